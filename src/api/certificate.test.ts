import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { connect } from "node:tls";
import { startApi } from "../../tests/support/api.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { OperatorError } from "../base/errors.ts";
import { type CertificateSource, loadIdentity, ownNames, watchIdentity } from "./certificate.ts";
import { makeSelfSigned } from "./self-signed.ts";

const DAY_MS = 86_400_000;
const NAMES = ["localhost", "127.0.0.1", "::1", "node-1.corp.example"];

function folder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "signpost-cert-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("a self-made certificate holds its names and times, for any length of them", () => {
  const from = Date.UTC(2049, 11, 31);
  for (const names of [NAMES, Array.from({ length: 60 }, (_, index) => `name-${index}.example`)]) {
    const { cert, key } = makeSelfSigned(names, from, from + 10 * DAY_MS);
    const read = new X509Certificate(cert);
    assert.equal(read.validFromDate.getTime(), from);
    assert.equal(read.validToDate.getTime(), from + 10 * DAY_MS);
    assert.equal(read.verify(read.publicKey), true);
    assert.equal(read.ca, false);
    assert.match(key, /^-----BEGIN PRIVATE KEY-----/);
    for (const name of names) assert.ok(read.checkHost(name) ?? read.checkIP(name), name);
  }
});

test("it is kept with its key, readable by nobody else, and made again before its end or for another name", () => {
  using directory = folder();
  const source = (names = NAMES): CertificateSource => ({ kind: "self-made", directory: directory.path, names });
  const now = Date.UTC(2026, 0, 1);
  const first = loadIdentity(source(), now);
  assert.deepEqual(loadIdentity(source(), now + 300 * DAY_MS), first);
  for (const name of ["api-key.pem", "api-certificate.pem"]) {
    assert.equal(statSync(join(directory.path, name)).mode & 0o777, 0o600);
  }
  const renewed = loadIdentity(source(), now + 370 * DAY_MS);
  assert.notEqual(renewed.cert, first.cert);
  assert.notEqual(loadIdentity(source([...NAMES, "10.0.0.1"]), now + 370 * DAY_MS).cert, renewed.cert);
  writeFileSync(join(directory.path, "api-key.pem"), "torn");
  assert.ok(new X509Certificate(loadIdentity(source(), now).cert));
});

test("a self-made key that others may read is refused, and a link in its way is not followed", () => {
  using directory = folder();
  const source: CertificateSource = { kind: "self-made", directory: directory.path, names: NAMES };
  const elsewhere = join(directory.path, "elsewhere");
  symlinkSync(elsewhere, join(directory.path, "api-key.pem.new"));
  const made = loadIdentity(source, Date.UTC(2026, 0, 1));
  assert.equal(statSync(elsewhere, { throwIfNoEntry: false }), undefined);
  const key = join(directory.path, "api-key.pem");
  chmodSync(key, 0o644);
  assert.throws(() => loadIdentity(source, Date.UTC(2026, 0, 1)), { name: "OperatorError", message: /chmod 600 \S+$/ });
  chmodSync(key, 0o600);
  assert.deepEqual(loadIdentity(source, Date.UTC(2026, 0, 1)), made);
});

test("names of the machine and the address that it listens on", () => {
  assert.ok(ownNames("0.0.0.0").includes("localhost"));
  assert.ok(!ownNames("0.0.0.0").includes("0.0.0.0"));
  assert.ok(ownNames("10.1.2.3").includes("10.1.2.3"));
});

test("files that cannot be used refuse the start in one line without their content", () => {
  using directory = folder();
  const [certFile, keyFile] = [join(directory.path, "c.pem"), join(directory.path, "k.pem")];
  const source: CertificateSource = { kind: "files", certFile, keyFile };
  const refusal = { name: "OperatorError", message: /^cannot use the certificate .*c\.pem with the key .*k\.pem: / };
  assert.throws(() => loadIdentity(source, 0), refusal);
  const one = makeSelfSigned(["a"], 0, DAY_MS);
  const other = makeSelfSigned(["a"], 0, DAY_MS);
  writeFileSync(certFile, one.cert);
  writeFileSync(keyFile, other.key);
  assert.throws(() => loadIdentity(source, 0), refusal);
  writeFileSync(keyFile, "SECRET");
  assert.throws(
    () => loadIdentity(source, 0),
    (error) => error instanceof OperatorError && !error.message.includes("SECRET"),
  );
  chmodSync(keyFile, 0o600);
});

test("a changed certificate is served to the next connection, and one that cannot be used changes nothing", async () => {
  using directory = folder();
  const [certFile, keyFile] = [join(directory.path, "c.pem"), join(directory.path, "k.pem")];
  const write = ({ cert, key }: { readonly cert: string; readonly key: string }) => {
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  const now = Date.now();
  write(makeSelfSigned(["one.example"], now - DAY_MS, now + DAY_MS));
  const lines: string[] = [];
  await using api = await startApi(() => [], {
    certificate: { kind: "files", certFile, keyFile },
    log: (_level, message) => lines.push(message),
  });
  const served = () => servedName(api.server.port);
  assert.equal(await served(), "DNS:one.example");
  const next = makeSelfSigned(["two.example"], now - DAY_MS, now + DAY_MS);
  writeFileSync(certFile, next.cert);
  api.server.reloadCertificate();
  api.server.reloadCertificate();
  assert.equal(await served(), "DNS:one.example");
  assert.equal(lines.filter((line) => line.includes("stays")).length, 1, "one line for one fault");
  writeFileSync(keyFile, next.key);
  api.server.reloadCertificate();
  assert.equal(await served(), "DNS:two.example");
});

test("files are looked at again and again", async () => {
  using directory = folder();
  const source: CertificateSource = { kind: "self-made", directory: directory.path, names: ["a.example"] };
  let now = 0;
  const first = loadIdentity(source, now);
  const used: string[] = [];
  const watch = watchIdentity(source, first, ({ cert }) => used.push(cert), {
    now: () => now,
    log: () => {},
    checkMs: 5,
  });
  now = 380 * DAY_MS;
  await waitFor("a renewed certificate", 5_000, () => used.length > 0);
  watch.stop();
  assert.equal(readFileSync(join(directory.path, "api-certificate.pem"), "utf8"), used[0]);
});

function servedName(port: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subjectaltname);
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { loadIdentity } from "../../src/api/certificate.ts";
import { waitFor } from "../support/wait.ts";
import { dig } from "./dig.ts";
import { startNode } from "./running-node.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-reload-"));
after(() => rm(parent, { recursive: true, force: true }));

const DAY_MS = 86_400_000;

/** Another certificate at every call. */
async function writeCertificate(certFile: string, keyFile: string): Promise<string> {
  const directory = await mkdtemp(join(parent, "made-"));
  const source = { kind: "self-made", directory, names: ["localhost"] } as const;
  const { cert, key } = await loadIdentity(source, Date.now() - DAY_MS);
  await writeFile(keyFile, key);
  await writeFile(certFile, cert);
  return new X509Certificate(cert).fingerprint256;
}

function fingerprint(api: string): Promise<string> {
  const { hostname, port } = new URL(api);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? "");
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

test("SIGHUP takes the certificate's files anew; a bad one changes nothing, and zone files are not read again", async () => {
  const [certFile, keyFile, zone] = ["tls.crt", "tls.key", "reload.zone"].map((name) => join(parent, name));
  assert.ok(certFile !== undefined && keyFile !== undefined && zone !== undefined);
  await writeFile(zone, "$ORIGIN reload.test.\n$TTL 60\n@ SOA ns1 host 1 1 2 3 4\n@ NS ns1\nns1 A 192.0.2.1\n");
  const first = await writeCertificate(certFile, keyFile);
  await using node = await startNode({
    zones: [zone],
    env: { SVC_API_TLS_CERT_FILE: certFile, SVC_API_TLS_KEY_FILE: keyFile },
  });
  assert.equal(await fingerprint(node.api), first);

  const second = await writeCertificate(certFile, keyFile);
  await writeFile(zone, "$ORIGIN reload.test.\n$TTL 60\n@ SOA ns1 host 2 1 2 3 4\n@ NS ns1\nns1 A 192.0.2.2\n");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the new certificate", 5_000, async () => (await fingerprint(node.api)) === second);
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.equal(await dig(endpoint, "ns1.reload.test", "A"), "192.0.2.1");

  await writeFile(keyFile, "no key");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the fault is reported", 5_000, () =>
    node.messages().some((message) => message.startsWith("api: the certificate in use stays")),
  );
  assert.equal(await fingerprint(node.api), second);
  assert.equal((await node.get("/readyz")).status, 200);
});

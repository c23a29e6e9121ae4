/** Programs of the ecosystem that ask over TLS and HTTPS, and what they see when a thread dies. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { exchangeUdp } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { requireProgram } from "../support/peers.ts";
import { freePort } from "../support/ports.ts";
import { type Child, runToEnd, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { untilFigure } from "./notify-world.ts";
import { FAULTY_MAIN, type ScenarioNode, startNode } from "./running-node.ts";
import { caFile, env, kdig, switchOn } from "./transport-world.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-transport-clients-"));
after(() => rm(directory, { recursive: true, force: true }));

/** For all who only ask. */
let node: ScenarioNode;
before(async () => {
  node = await startNode({ env });
});
after(() => node[Symbol.asyncDispose]());

async function written(name: string, lines: readonly string[]): Promise<string> {
  const file = join(directory, name);
  await writeFile(file, `${lines.join("\n")}\n`);
  return file;
}

const RECURSION_DESIRED = 0x0100;
const QUERY = encodeQuery({ name: "www.example.test", type: 1, flags: RECURSION_DESIRED });

/** Addresses of www.example.test as a forwarder on that port gives them, in order. */
async function addressesBehind(port: number, child: Child): Promise<readonly string[]> {
  const answer = await waitFor("the forwarder answers", 30_000, async () => {
    if (child.status() !== undefined) throw new Error(`${child.name} ended:\n${child.output()}`);
    const response = await exchangeUdp({ port }, QUERY, 1_000);
    return response !== undefined && (response.readUInt16BE(2) & 15) === 0 ? response : undefined;
  });
  const text = answer.toString("hex");
  return ["192.0.2.80", "192.0.2.81"].filter((address) =>
    text.includes(
      address
        .split(".")
        .map((part) => Number(part).toString(16).padStart(2, "0"))
        .join(""),
    ),
  );
}

test("unbound forwards to it over TLS, and verifies its name", async (t) => {
  const unbound = requireProgram(t, "unbound");
  if (unbound === undefined) return;
  const { dot } = await switchOn(node);
  const port = await freePort();
  const configFor = (name: string) =>
    written(`unbound-${name}.conf`, [
      "server:",
      `  interface: 127.0.0.1@${port}`,
      "  access-control: 127.0.0.0/8 allow",
      '  username: ""',
      '  chroot: ""',
      `  directory: "${directory}"`,
      `  pidfile: "${join(directory, "unbound.pid")}"`,
      "  use-syslog: no",
      '  module-config: "iterator"',
      "  do-not-query-localhost: no",
      '  local-zone: "test." transparent',
      `  tls-cert-bundle: "${caFile}"`,
      "forward-zone:",
      '  name: "."',
      "  forward-tls-upstream: yes",
      `  forward-addr: 127.0.0.1@${dot}#${name}`,
      "remote-control:",
      "  control-enable: no",
    ]);
  const right = await startChild("unbound", unbound, ["-d", "-c", await configFor("dns.test")], {});
  try {
    assert.deepEqual(await addressesBehind(port, right), ["192.0.2.80", "192.0.2.81"]);
  } finally {
    await right.stop();
  }
  const wrong = await startChild("unbound", unbound, ["-d", "-c", await configFor("other.test")], {});
  try {
    const answer = await waitFor("unbound gives up", 30_000, () => exchangeUdp({ port }, QUERY, 20_000));
    assert.equal(answer.readUInt16BE(2) & 15, 2, "SERVFAIL");
  } finally {
    await wrong.stop();
  }
});

test("dnsdist has it for a backend over TLS and over HTTPS", async (t) => {
  const dnsdist = requireProgram(t, "dnsdist");
  if (dnsdist === undefined) return;
  const { dot, doh } = await switchOn(node);
  const backends = {
    tls: `address="127.0.0.1:${dot}"`,
    https: `address="127.0.0.1:${doh}", dohPath="/dns-query"`,
  };
  for (const [name, backend] of Object.entries(backends)) {
    const port = await freePort();
    const trust = `tls="openssl", subjectName="dns.test", caStore="${caFile}", validateCertificates=true`;
    const file = await written(`dnsdist-${name}.conf`, [
      "setSecurityPollSuffix('')",
      `setLocal("127.0.0.1:${port}")`,
      `newServer({${backend}, ${trust}, healthCheckMode="auto", checkName="example.test.", checkType="SOA"})`,
    ]);
    const child = await startChild("dnsdist", dnsdist, ["--supervised", "--disable-syslog", "-C", file], {});
    try {
      assert.deepEqual(await addressesBehind(port, child), ["192.0.2.80", "192.0.2.81"], name);
    } finally {
      await child.stop();
    }
  }
});

test("dnsperf loses nothing over TLS and HTTPS, h2load gets every answer", async (t) => {
  if (requireProgram(t, "dnsperf") === undefined || requireProgram(t, "h2load") === undefined) return;
  const { dot, doh } = await switchOn(node);
  const queries = await written("queries", ["www.example.test A", "example.test SOA", "nope.example.test A"]);
  const common = ["-s", "127.0.0.1", "-d", queries, "-n", "1000", "-c", "8", "-q", "200", "-t", "30"];
  const overTls = await runToEnd("dnsperf", [...common, "-m", "dot", "-p", String(dot)], 60_000);
  assert.match(overTls, /Queries completed:\s+3000 \(100\.00%\)/);
  const uri = "doh-uri=https://localhost/dns-query";
  for (const method of ["GET", "POST"]) {
    const words = [...common, "-m", "doh", "-p", String(doh), "-O", uri, "-O", `doh-method=${method}`];
    assert.match(await runToEnd("dnsperf", words, 60_000), /Queries completed:\s+3000 \(100\.00%\)/, method);
  }
  const body = join(directory, "query.bin");
  await writeFile(body, QUERY);
  const load = ["-n", "5000", "-c", "20", "-m", "50", "-d", body, "-H", "content-type: application/dns-message"];
  const report = await runToEnd("h2load", [...load, `https://127.0.0.1:${doh}/dns-query`], 60_000);
  assert.match(report, /5000 succeeded, 0 failed, 0 errored, 0 timeout/);
  assert.match(report, /status codes: 5000 2xx/);
});

test("when its thread dies another one listens on the same addresses, and the rest of the node answers meanwhile", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  const fault = join(directory, "die");
  // Ports of their own: the addresses stay the same.
  const [dot, doh] = [await freePort(), await freePort()];
  await using faulty = await startNode({ main: FAULTY_MAIN, env: { ...env, FAULT_SECURE_FILE: fault } });
  await switchOn(faulty, { dot, doh });
  const [udp] = faulty.dns;
  assert.ok(udp);
  for (let death = 1; death <= 3; death++) {
    await writeFile(fault, "");
    process.kill(faulty.child.pid, "SIGHUP");
    await untilFigure(faulty, 'svc_thread_restarts_total{thread="secure"}', death);
    assert.ok(await exchangeUdp(udp, QUERY, 10_000));
    for (const words of [
      [dot, "+tls"],
      [doh, "+https"],
    ] as const) {
      const [port, how] = words;
      // A connection may still find the end of the one before.
      const answers = () => kdig(port, how, "+short", "www.example.test", "A").catch(() => "");
      await waitFor(`${how} answers`, 20_000, async () => (await answers()).includes("192.0.2.80"));
    }
  }
});

test("while control is replaced both answer", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  const fault = join(directory, "control-dies");
  await using faulty = await startNode({ main: FAULTY_MAIN, env: { ...env, FAULT_FILE: fault } });
  const { dot, doh } = await switchOn(faulty);
  await writeFile(fault, "slowly");
  process.kill(faulty.child.pid, "SIGHUP");
  let asked = 0;
  await waitFor("control is replaced", 60_000, async () => {
    assert.match(await kdig(dot, "+tls", "+short", "www.example.test", "A"), /192\.0\.2\.80/);
    assert.match(await kdig(doh, "+https", "+short", "www.example.test", "A"), /192\.0\.2\.80/);
    asked += 1;
    const text = await faulty.get("/metrics").then(
      (response) => response.text(),
      () => "",
    );
    return text.includes('svc_thread_restarts_total{thread="control"} 1\n');
  });
  assert.ok(asked > 0);
  assert.match(await kdig(dot, "+tls", "+short", "www.example.test", "A"), /192\.0\.2\.80/);
});

/** Real upstreams behind the whole way of a query: what they are asked by, and how they are found. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { openUdpClient } from "../../tests/support/dns-client.ts";
import { openResolveLab } from "../../tests/support/resolve-lab.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../../tests/support/scripted-upstream.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { answerLines, decode, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { FLAG } from "../dns/codes.ts";
import type { Upstream } from "../dns/upstream.ts";
import { publishZoneFile } from "../publish/zone-file-source.ts";
import { restartsOf } from "./status.ts";

const DYING_ENTRY = new URL("../../tests/support/dying-resolve-entry.ts", import.meta.url);
/** With patience: how often upstreams are asked is no matter of how busy the machine is. */
const ENTRY = new URL("../../tests/support/patient-resolve-entry.ts", import.meta.url);
const handler = ({ name }: { readonly name: string }) => ({ kind: "answer", text: `${name} 300 A 192.0.2.7` }) as const;

type Wish = { readonly upstream: Partial<Upstream>; readonly caPem?: string; readonly zones?: readonly string[] };

/** The lines of the answer to a question that the one upstream is asked. */
async function askThrough({ port }: Pick<ScriptedUpstream, "port">, { upstream, caPem, zones = [] }: Wish) {
  const whole: Upstream = {
    transport: "dns",
    host: "127.0.0.1",
    isAddress: true,
    port,
    tlsName: undefined,
    ...upstream,
  };
  const route = { upstreams: [whole] };
  await using lab = await openResolveLab({
    udp: "batch",
    entry: ENTRY,
    route,
    ...(caPem === undefined ? {} : { caPem }),
  });
  for (const text of zones) assert.deepEqual(publishZoneFile(lab.writer, Buffer.from(text)).errors, []);
  const client = await openUdpClient({ port: lab.addresses[0]?.port ?? 0 });
  try {
    const answer = await client.ask(queryBytes("www.example. A", { flags: FLAG.RD }));
    assert.ok(answer !== undefined);
    return answerLines(decode(answer));
  } finally {
    client.close();
  }
}

const FOUND = ["NOERROR rd ra", "answer www.example. 300 IN A 192.0.2.7"];

test("an upstream by its address", async () => {
  await using server = await startScriptedUpstream({ handler });
  assert.deepEqual(await askThrough(server, { upstream: {} }), FOUND);
  assert.equal(server.queries.length, 1);
});

test("an upstream by a name of our own zones", async () => {
  await using server = await startScriptedUpstream({ handler });
  const upstream = { host: "resolver.corp.test", isAddress: false };
  const zones = [zone("corp.test.", "resolver A 127.0.0.1\n")];
  assert.deepEqual(await askThrough(server, { upstream, zones }), FOUND);
});

test("an upstream over TLS is believed where an authority of the settings vouches for its name", async () => {
  const authority = makeCertificate({ commonName: "authority", isAuthority: true });
  const tls = makeCertificate({ commonName: "upstream", names: ["dns.example"], issuer: authority });
  await using server = await startScriptedUpstream({ handler, tls });
  const upstream = { transport: "tls", port: server.tlsPort, tlsName: "dns.example" } as const;
  assert.deepEqual(await askThrough(server, { upstream, caPem: authority.cert }), FOUND);
  assert.deepEqual(
    server.queries.map(({ transport }) => transport),
    ["tls"],
  );
  const refused = await askThrough(server, { upstream });
  assert.match(refused[0] ?? "", /^SERVFAIL rd ra ede=2[23]$/);
  const otherName = { ...upstream, tlsName: "other.example" };
  assert.match((await askThrough(server, { upstream: otherName, caPem: authority.cert }))[0] ?? "", /^SERVFAIL/);
  assert.equal(server.queries.length, 1);
});

const WAITING = 300;
const openFiles = () => readdirSync("/proc/self/fd").length;

test("what a thread that died has left open is closed by the one that comes after it", async () => {
  await using server = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
  const { port } = server;
  const upstream: Upstream = { transport: "dns", host: "127.0.0.1", isAddress: true, port, tlsName: undefined };
  await using lab = await openResolveLab({ udp: "batch", entry: DYING_ENTRY, route: { upstreams: [upstream] } });
  const client = await openUdpClient({ port: lab.addresses[0]?.port ?? 0 });
  using _ = { [Symbol.dispose]: client.close };
  const before = openFiles();
  for (let death = 1; death <= 3; death++) {
    const ask = (name: string) => void client.ask(queryBytes(`${name}.example. A`, { flags: FLAG.RD }), 1);
    for (let index = 0; index < WAITING; index++) ask(`n${index}-${death}`);
    await waitFor("upstreams are being asked", 10_000, () => openFiles() >= before + WAITING / 2);
    ask("kill");
    await waitFor("the thread is replaced", 10_000, () => restartsOf(lab.status, "resolve") === death);
    await waitFor("its sockets are closed", 10_000, () => openFiles() < before + WAITING / 10);
    await waitFor("the new one is there", 10_000, async () => (await lab.link.figures())?.waiting === 0);
  }
});

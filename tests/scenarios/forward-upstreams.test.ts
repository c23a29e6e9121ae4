/** Several upstreams, those that fail and come back, TCP, TLS, and what the upstream is asked. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate } from "../support/certificates.ts";
import { tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { waitFor } from "../support/wait.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { type Answer, forwardTo, startForwarding, ZONE } from "./forward-world.ts";

const forwarding = sharedForwarding();

const echo = ({ name }: { readonly name: string }) => ({ kind: "answer", text: `${name} 60 A 192.0.2.1` }) as const;

test("with a silent upstream beside a good one every question is answered, and the silent one is soon asked rarely", async () => {
  await using silent = await startScriptedUpstream({ handler: () => ({ kind: "silence" }) });
  await using world = await forwarding({ handler: echo });
  await forwardTo(world, [`127.0.0.1:${silent.port}`, `127.0.0.1:${world.upstream.port}`]);
  for (let index = 0; index < 100; index++)
    assert.equal((await world.ask(`n${index}.example A`)).rcode, "NOERROR", String(index));
  assert.ok(silent.queries.length < 60, `${silent.queries.length} of 100 went to the silent one`);
  silent.setHandler(echo);
  const before = silent.queries.length;
  let number = 0;
  await waitFor("it is tried again", 60_000, async () => {
    await world.ask(`again${number++}.example A`);
    return silent.queries.length > before;
  });
});

test("an upstream that refuses connections, fails or refuses is passed over at once", async () => {
  await using failing = await startScriptedUpstream({ handler: () => ({ kind: "answer", rcode: 2 }) });
  await using refusing = await startScriptedUpstream({ handler: () => ({ kind: "answer", rcode: 5 }) });
  await using world = await forwarding({ handler: echo });
  const gone = await startScriptedUpstream({ handler: echo });
  await gone.close();
  await forwardTo(
    world,
    [gone, failing, refusing, world.upstream].map(({ port }) => `127.0.0.1:${port}`),
  );
  for (let index = 0; index < 20; index++)
    assert.deepEqual((await world.ask(`n${index}.example A`)).data, [`n${index}.example. A 192.0.2.1`]);
});

test("an upstream without EDNS is asked without it", async () => {
  await using world = await forwarding({
    handler: (query) => (query.message.edns === undefined ? echo(query) : { kind: "answer", rcode: 1, edns: "none" }),
  });
  assert.deepEqual((await world.ask("old.example A")).data, ["old.example. A 192.0.2.1"]);
});

test("a truncated answer is asked for over TCP", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: (query) => (query.transport === "udp" ? { kind: "answer", isTruncated: true } : echo(query)),
  });
  assert.deepEqual((await world.ask("cut.example A")).data, ["cut.example. A 192.0.2.1"]);
  assert.deepEqual(
    world.upstream.queries.map(({ transport }) => transport),
    ["udp", "tcp"],
  );
});

test("upstreams by IPv6 address and by the name of a host of ours", async () => {
  await using v6 = await startScriptedUpstream({ handler: echo, addresses: ["::1"] });
  await using world = await forwarding({ handler: echo, isPatient: true });
  await forwardTo(world, [`[::1]:${v6.port}`]);
  assert.equal((await world.ask("six.example A")).rcode, "NOERROR");
  assert.equal(v6.queries.length, 1);
  await world.record({ name: "resolver", type: "A", values: [{ value: "127.0.0.1" }] });
  await forwardTo(world, [`resolver.own.test:${world.upstream.port}`]);
  assert.deepEqual((await world.ask("named.example A")).data, ["named.example. A 192.0.2.1"]);
});

test("tls:// upstreams are verified by name, asked over one connection, and never over plain text", async () => {
  const authority = makeCertificate({ commonName: "authority", isAuthority: true });
  const good = makeCertificate({ commonName: "resolver", names: ["resolver.example", "127.0.0.1"], issuer: authority });
  await using world = await startForwarding({ forwards: false, upstream: { tls: good }, handler: echo });
  const caFile = join(world.node.directory, "ca.pem");
  await writeFile(caFile, authority.cert);
  await using secure = await startForwarding({
    forwards: false,
    upstream: { tls: good },
    handler: echo,
    env: { SVC_FORWARDERS_CA_FILE: caFile },
  });
  const { tlsPort, port } = secure.upstream;
  await forwardTo(secure, [`tls://127.0.0.1:${tlsPort}#resolver.example`]);
  const names = Array.from({ length: 20 }, (_, index) => `n${index}.example`);
  const answers = await Promise.all(names.map((name) => secure.ask(`${name} A`)));
  for (const [index, { data }] of answers.entries()) assert.deepEqual(data, [`${names[index]}. A 192.0.2.1`]);
  assert.deepEqual([...new Set(secure.upstream.queries.map(({ transport }) => transport))], ["tls"]);
  assert.ok(secure.upstream.connections().accepted <= 4, "connections are shared");
  await forwardTo(secure, [`tls://127.0.0.1:${tlsPort}#other.example`]);
  assert.equal((await secure.ask("wrong.example A")).rcode, "SERVFAIL", "the certificate has another name");
  await forwardTo(secure, [`tls://127.0.0.1:${port}#resolver.example`]);
  assert.equal((await secure.ask("plain.example A")).rcode, "SERVFAIL", "no TLS there");
  assert.ok(
    secure.upstream.queries.every(({ name }) => !/^(wrong|plain)\./i.test(name)),
    "nothing was asked",
  );
  await forwardTo(world, [`tls://127.0.0.1:${world.upstream.tlsPort}#resolver.example`]);
  assert.equal((await world.ask("unknown-ca.example A")).rcode, "SERVFAIL", "the authority is not trusted");
});

test("a great many distinct questions to a dead upstream are in nobody's way, and all of them end", async () => {
  await using world = await startForwarding({ handler: () => ({ kind: "silence" }), upstream: { keeps: false } });
  await world.record({ name: "here", type: "A", values: [{ value: "192.0.2.7" }] });
  // A datagram may come while the kernel's buffer is full of the others: as any client, these ask again then.
  const askUntilAnswered = (question: string, timeoutMs: number) =>
    waitFor(question, 60_000, () => world.tryAsk(question, { timeoutMs }));
  const many: Promise<Answer>[] = [];
  while (many.length < 3_000) {
    many.push(askUntilAnswered(`n${many.length}.dead.example A`, 8_000));
    if (many.length % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (let index = 0; index < 200; index++)
    assert.deepEqual((await askUntilAnswered(`here.${ZONE} A`, 2_000)).data, [`here.${ZONE} A 192.0.2.7`]);
  for (const { rcode } of await Promise.all(many)) assert.equal(rcode, "SERVFAIL");
  world.upstream.setHandler(tableHandler("alive.example. 60 A 192.0.2.1"));
  await waitFor("it forwards again", 20_000, async () => (await world.ask("alive.example A")).rcode === "NOERROR");
});

/** Each switch of /forwarders/hardening: the attack that works without it, and fails with it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RRTYPE } from "../../src/dns/codes.ts";
import { type AnswerReply, type ReceivedQuery, type Reply, SERVER_COOKIE } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { assertTtls, type Forwarding } from "./forward-world.ts";
import { create } from "./notify-world.ts";

const forwarding = sharedForwarding();

const HONEST = "www.example. 300 A 192.0.2.1";
const EVIL = "www.example. 300 A 203.0.113.66";

/** Who is not on the path can send datagrams and has no part in a connection: over TCP there is only the honest answer. */
function attacked(query: ReceivedQuery, forged: AnswerReply, honest: AnswerReply): readonly Reply[] {
  return query.transport === "udp" ? [forged, { ...honest, delayMs: 150 }] : [honest];
}

async function harden(world: Forwarding, json: object): Promise<void> {
  await world.put("/forwarders/hardening", json);
}

const DEFAULTS = {
  case_randomization: true,
  dns_cookies: true,
  bailiwick_scrubbing: true,
  rebinding_protection: false,
  max_udp_size: 1232,
  serve_stale: false,
  refuse_any: false,
};

test("what is on by default", async () => {
  await using world = await forwarding();
  const { body } = await world.api.ask("GET", "/forwarders/hardening");
  for (const [field, value] of Object.entries(DEFAULTS)) assert.equal(body.effective[field], value, field);
});

test("case_randomization: who guesses id and port must guess the letters' case too", async () => {
  await using world = await forwarding({
    handler: (query) => attacked(query, { kind: "answer", text: EVIL, lie: "lower" }, { kind: "answer", text: HONEST }),
  });
  await harden(world, { case_randomization: false, dns_cookies: false });
  assert.deepEqual((await world.ask("www.example A")).data, ["www.example. A 203.0.113.66"], "the attack works");
  await harden(world, { case_randomization: true });
  const names = new Set<string>();
  for (const label of ["abcdefghijklmnop", "qrstuvwxyzabcdef"]) {
    world.upstream.setHandler((query) =>
      attacked(
        query,
        { kind: "answer", text: `${query.name.toLowerCase()} 60 A 203.0.113.66`, lie: "lower" },
        { kind: "answer", text: `${query.name} 60 A 192.0.2.1` },
      ),
    );
    const { data } = await world.ask(`${label}.example A`);
    assert.deepEqual(data, [`${label}.example. A 192.0.2.1`]);
  }
  for (const { name } of world.upstream.queries) names.add(name);
  assert.ok(
    [...names].some((name) => name !== name.toLowerCase()),
    "the case is random",
  );
});

test("dns_cookies: an answer without the client's cookie is none, once the server has shown that it has them", async () => {
  const attack = (query: ReceivedQuery) =>
    attacked(query, { kind: "answer", text: EVIL }, { kind: "answer", text: HONEST, cookie: "good" });
  await using world = await forwarding({
    handler: () => ({ kind: "answer", text: "first.example. 60 A 192.0.2.9", cookie: "good" }),
  });
  await harden(world, { case_randomization: false, dns_cookies: false });
  world.upstream.setHandler(attack);
  assert.deepEqual((await world.ask("www.example A")).data, ["www.example. A 203.0.113.66"], "the attack works");
  await harden(world, { dns_cookies: true });
  world.upstream.setHandler(() => ({ kind: "answer", text: "first.example. 60 A 192.0.2.9", cookie: "good" }));
  await world.ask("first.example A");
  world.upstream.setHandler(attack);
  assert.deepEqual((await world.ask("www.example A")).data, ["www.example. A 192.0.2.1"]);
  const last = world.upstream.queries.at(-1);
  assert.deepEqual(last?.cookie?.subarray(8), SERVER_COOKIE, "the server's cookie goes back to it");
});

test("bailiwick_scrubbing: what was not asked for is not passed on", async () => {
  await using world = await forwarding({
    handler: () => ({ kind: "answer", text: `${HONEST}\nbank.example. 300 A 203.0.113.66` }),
  });
  await harden(world, { bailiwick_scrubbing: false });
  assert.deepEqual((await world.ask("www.example A")).data.toSorted(), [
    "bank.example. A 203.0.113.66",
    "www.example. A 192.0.2.1",
  ]);
  await harden(world, { bailiwick_scrubbing: true });
  assert.deepEqual((await world.ask("www.example A")).data, ["www.example. A 192.0.2.1"]);
});

const PRIVATE: readonly (readonly [string, string])[] = [
  ["A", "10.0.0.1"],
  ["A", "172.16.5.4"],
  ["A", "192.168.1.1"],
  ["A", "127.0.0.1"],
  ["A", "169.254.169.254"],
  ["A", "0.0.0.0"],
  ["AAAA", "::1"],
  ["AAAA", "fd00::1"],
  ["AAAA", "fe80::1"],
  ["AAAA", "::ffff:10.0.0.1"],
];

test("rebinding_protection: no private address for a public name, but where an exception says so", async () => {
  const index = (name: string) => Number(/^n(\d+)/i.exec(name)?.[1] ?? 0);
  await using world = await forwarding({
    handler: ({ name }) => {
      const [type, address] = PRIVATE[index(name)] ?? ["A", "10.0.0.1"];
      return { kind: "answer", text: `${name} 60 ${type} ${address}` };
    },
  });
  for (const [number, [type]] of PRIVATE.entries())
    assert.equal((await world.ask(`n${number}.example ${type}`)).answer.length, 1, "the attack works");
  await harden(world, { rebinding_protection: true, rebinding_exceptions: ["corp.example."] });
  for (const [number, [type, address]] of PRIVATE.entries()) {
    const { answer } = await world.ask(`n${number}.example ${type}`);
    assert.deepEqual(answer, [], address);
    assert.equal((await world.ask(`n${number}.corp.example ${type}`)).answer.length, 1, address);
  }
  world.upstream.setHandler(({ name }) => ({ kind: "answer", text: `${name} 60 A 10.0.0.1\n${name} 60 A 192.0.2.1` }));
  assert.deepEqual((await world.ask("mixed.example A")).data, ["mixed.example. A 192.0.2.1"]);
});

test("max_udp_size is what the upstream is told", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: ({ name }) => ({ kind: "answer", text: `${name} 60 A 192.0.2.1` }),
  });
  await world.ask("a.example A");
  await harden(world, { max_udp_size: 4096 });
  await world.ask("b.example A");
  await harden(world, { max_udp_size: 512 });
  await world.ask("c.example A");
  assert.deepEqual(
    world.upstream.queries.map(({ message }) => message.edns?.udpSize),
    [1232, 4096, 512],
  );
});

test("min_ttl_seconds and max_ttl_seconds hold for the default forwarder alone", async () => {
  const handler = ({ name }: { readonly name: string }) =>
    ({ kind: "answer", text: `${name} ${/^s/i.test(name) ? 5 : 90_000} A 192.0.2.1` }) as const;
  await using partner = await startScriptedUpstream({ handler });
  await using world = await forwarding({ handler });
  await create(world.api, "/forwarders", { domain: "partner.example.", upstreams: [`127.0.0.1:${partner.port}`] });
  await harden(world, { min_ttl_seconds: 60, max_ttl_seconds: 600 });
  assertTtls(await world.ask("short.example A"), [60]);
  assertTtls(await world.ask("long.example A"), [600]);
  assertTtls(await world.ask("short.partner.example A"), [5]);
  // As /config/cache has it.
  assertTtls(await world.ask("long.partner.example A"), [86_400]);
});

test("refuse_any: ANY is not passed on to the default forwarder", async () => {
  await using world = await forwarding({
    handler: ({ name }) => ({ kind: "answer", text: `${name} 60 A 192.0.2.1` }),
  });
  assert.equal((await world.ask("any.example ANY")).rcode, "NOERROR");
  assert.equal(world.upstream.queries.at(-1)?.message.questions[0]?.type, RRTYPE.ANY);
  await harden(world, { refuse_any: true });
  assert.equal((await world.ask("any.example ANY")).rcode, "REFUSED");
  assert.equal((await world.ask("any.example A")).rcode, "NOERROR");
});

test("ids and source ports cannot be foretold", async () => {
  await using world = await forwarding({
    handler: ({ name }) => ({ kind: "answer", text: `${name} 60 A 192.0.2.1` }),
  });
  const count = 200;
  for (let index = 0; index < count; index++) await world.ask(`n${index}.example A`);
  const { queries } = world.upstream;
  assert.ok(new Set(queries.map(({ source }) => source.port)).size > count * 0.95, "each port is drawn anew");
  assert.ok(new Set(queries.map(({ message }) => message.id)).size > count * 0.95, "each id is drawn anew");
  const steps = new Set(queries.slice(1).map(({ message }, index) => message.id - (queries[index]?.message.id ?? 0)));
  assert.ok(steps.size > count * 0.9, "and not counted up");
});

test("each switch is validated, by the name of its field", async () => {
  await using world = await forwarding();
  const bad = [
    [{ max_udp_size: 100 }, "/max_udp_size"],
    [{ max_udp_size: 70_000 }, "/max_udp_size"],
    [{ rebinding_exceptions: ["not a name..x"] }, "/rebinding_exceptions/0"],
    [{ min_ttl_seconds: 100, max_ttl_seconds: 10 }, "/min_ttl_seconds"],
    [{ case_randomization: "yes" }, "/case_randomization"],
    [{ unknown_switch: true }, "/unknown_switch"],
  ] as const;
  for (const [json, pointer] of bad) {
    const { status, body } = await world.api.ask("PUT", "/forwarders/hardening", json);
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], JSON.stringify(body));
  }
});

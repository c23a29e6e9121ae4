/** The cache of forwarded answers: what is kept, for how long, who shares it, and how it is emptied. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tableHandler } from "../support/scripted-replies.ts";
import { waitFor } from "../support/wait.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { assertTtls, type Forwarding, startForwarding } from "./forward-world.ts";
import { figure } from "./notify-world.ts";

const forwarding = sharedForwarding();

const TABLE = `
a.example. 300 A 192.0.2.1
b.example. 300 A 192.0.2.2
deep.a.example. 300 A 192.0.2.3
never.example. 0 A 192.0.2.4
short.example. 1 A 192.0.2.5
long.example. 2000000 A 192.0.2.6
example. 3600 SOA ns.example. host.example. 1 7200 900 1209600 60
`;

/** An RRSIG of s.example's A, whose text no parser here reads. */
const SIGNATURE = "s.example. 60 TYPE46 \\# 30 000108020000003c70d0c0005e0be1000001076578616d706c6500aabbcc";

function countOf(world: Forwarding, question: string): number {
  return world.asked().filter((one) => one === question).length;
}

test("a cached answer counts its TTL down and is not asked for again", async () => {
  await using world = await startForwarding({ table: TABLE, isPatient: true });
  const first = await world.ask("a.example A");
  assertTtls(first, [300]);
  const later = await waitFor("the TTL falls", 10_000, async () => {
    const { ttls } = await world.ask("a.example A");
    return ttls[0]! < first.ttls[0]! && ttls;
  });
  assert.ok(later[0]! > 280, String(later));
  assert.equal(countOf(world, "a.example. A"), 1);
  assert.ok((await figure(world.node, "svc_cache_hits_total")) >= 1);
  assert.equal(await figure(world.node, "svc_cache_misses_total"), 1);
});

test("TTL 0 is given to those who wait and kept for nobody; an expired one is asked for again", async () => {
  await using world = await forwarding({ table: TABLE, isPatient: true });
  for (const wanted of [1, 2]) {
    assert.deepEqual((await world.ask("never.example A")).answer, ["never.example. 0 A 192.0.2.4"]);
    assert.equal(countOf(world, "never.example. A"), wanted);
  }
  await world.ask("short.example A");
  await waitFor("asked again", 10_000, async () => {
    await world.ask("short.example A");
    return countOf(world, "short.example. A") > 1;
  });
});

test("many clients that ask the same at once cost the upstream one query", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: () => ({ kind: "answer", text: "same.example. 60 A 192.0.2.9", delayMs: 300 }),
  });
  const answers = await Promise.all(Array.from({ length: 50 }, () => world.ask("same.example A")));
  for (const { data } of answers) assert.deepEqual(data, ["same.example. A 192.0.2.9"]);
  assert.equal(countOf(world, "same.example. A"), 1);
});

test("names are one name in any case, and each answer spells the question as it was asked", async () => {
  await using world = await forwarding({ table: TABLE, isPatient: true });
  assert.deepEqual((await world.ask("A.eXample A")).data, ["A.eXample. A 192.0.2.1"]);
  assert.deepEqual((await world.ask("a.EXAMPLE A")).data, ["a.EXAMPLE. A 192.0.2.1"]);
  assert.equal(countOf(world, "a.example. A"), 1);
});

test("flushed by name, by subtree and wholly, with counts", async () => {
  await using world = await forwarding({ table: TABLE, isPatient: true });
  const fill = async () => {
    for (const name of ["a", "b", "deep.a"]) await world.ask(`${name}.example A`);
  };
  const flush = async (json: object) => {
    const { status, body } = await world.api.ask("POST", "/cache/flush", json);
    assert.equal(status, 200, JSON.stringify(body));
    return body.flushed;
  };
  await fill();
  assert.equal(await flush({ name: "a.example." }), 1);
  await fill();
  assert.deepEqual(
    ["a", "b", "deep.a"].map((name) => countOf(world, `${name}.example. A`)),
    [2, 1, 1],
  );
  assert.equal(await flush({ name: "a.example.", subtree: true }), 2);
  await fill();
  assert.deepEqual(
    ["a", "b", "deep.a"].map((name) => countOf(world, `${name}.example. A`)),
    [3, 1, 2],
  );
  assert.equal(await flush({}), 3);
  assert.equal((await world.api.ask("GET", "/cache")).body.entries, 0);
  await fill();
  assert.deepEqual(
    ["a", "b", "deep.a"].map((name) => countOf(world, `${name}.example. A`)),
    [4, 2, 3],
  );
});

test("/config/cache is live: limits of TTLs, and a cache that is off keeps nothing", async () => {
  await using world = await forwarding({ table: TABLE, isPatient: true });
  assertTtls(await world.ask("long.example A"), [86_400]);
  await world.put("/config/cache", { min_ttl_seconds: 30, max_ttl_seconds: 100 });
  await world.api.ask("POST", "/cache/flush", {});
  assertTtls(await world.ask("long.example A"), [100]);
  assertTtls(await world.ask("short.example A"), [30]);
  await world.put("/config/cache", { enabled: false });
  await waitFor("nothing is kept", 10_000, async () => {
    const before = countOf(world, "b.example. A");
    await world.ask("b.example A");
    await world.ask("b.example A");
    return countOf(world, "b.example. A") === before + 2;
  });
});

test("a changed forwarder does not answer from what the one before had said", async () => {
  await using world = await forwarding({ table: TABLE, isPatient: true });
  await world.ask("a.example A");
  world.upstream.setHandler(tableHandler("a.example. 300 A 198.51.100.7"));
  assert.deepEqual((await world.ask("a.example A")).data, ["a.example. A 192.0.2.1"], "it is cached");
  await world.put("/forwarders/default", {
    upstreams: [`127.0.0.1:${world.upstream.port}`, "127.0.0.2:9"],
  });
  assert.deepEqual((await world.ask("a.example A")).data, ["a.example. A 198.51.100.7"]);
});

test("a popular answer is fetched anew before its time is over, and nobody waits for it", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: () => ({ kind: "answer", text: "hot.example. 12 A 192.0.2.1" }),
  });
  await world.ask("hot.example A");
  await waitFor("it is asked for again ahead of time", 20_000, async () => {
    const { ttls } = await world.ask("hot.example A");
    assert.ok(ttls[0]! > 0, "no answer is too old");
    return countOf(world, "hot.example. A") > 1;
  });
});

test("with serve-stale an expired answer is better than none, with EDE 3; without it there is SERVFAIL", async () => {
  await using world = await forwarding({ table: TABLE });
  await world.put("/forwarders/hardening", { serve_stale: true });
  await world.ask("short.example A");
  world.upstream.setHandler(() => ({ kind: "silence" }));
  const stale = await waitFor("a stale answer", 20_000, async () => {
    const answer = await world.ask("short.example A");
    return answer.ede === 3 && answer;
  });
  assert.deepEqual([stale.rcode, stale.data], ["NOERROR", ["short.example. A 192.0.2.5"]]);
  assert.ok(stale.ttls[0]! <= 30, "RFC 8767 section 4");
  assert.ok((await figure(world.node, "svc_cache_stale_total")) >= 1);
  await world.put("/forwarders/hardening", { serve_stale: false });
  const failed = await world.ask("short.example A");
  assert.equal(failed.rcode, "SERVFAIL");
});

test("DO and CD are questions of their own: signatures go only to those who ask for them", async () => {
  await using world = await forwarding({
    isPatient: true,
    handler: (query) => ({
      kind: "answer",
      text: `s.example. 60 A 192.0.2.1${query.message.edns?.wantsDnssec === true ? `\n${SIGNATURE}` : ""}`,
    }),
  });
  assert.equal((await world.ask("s.example A")).answer.length, 1);
  assert.equal((await world.ask("s.example A", { dnssecOk: true })).answer.length, 2);
  assert.equal((await world.ask("s.example A")).answer.length, 1);
  const unchecked = await world.ask("s.example A", { cd: true });
  assert.match(unchecked.flags, /cd/);
  assert.equal(world.asked().length, 3);
});

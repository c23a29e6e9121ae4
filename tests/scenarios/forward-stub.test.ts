/** Stub zones and delegations of ours: servers that are asked without recursion, and referrals that are followed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { requireRoot } from "../support/peers.ts";
import { type Handler, tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { ZONE } from "./forward-world.ts";
import { create } from "./notify-world.ts";

const forwarding = sharedForwarding();

const AA = 0x8400;

/** An authoritative server: no recursion, and AA. */
function authority(text: string): Handler {
  const answer = tableHandler(text, { followsAliases: false });
  return (query) => ({ ...answer(query), flags: AA });
}

/** A server that answers `handler` but refers to others below a cut. */
function referring(handler: Handler, cut: string, referral: string): Handler {
  return (query) =>
    query.name.toLowerCase().endsWith(cut) ? { kind: "answer", flags: 0x8000, text: referral } : handler(query);
}

const STUB = `
stub.test. 3600 SOA ns.stub.test. host.stub.test. 1 7200 900 1209600 60
www.stub.test. 300 A 192.0.2.1
out.stub.test. 300 CNAME www.elsewhere.example.
in.stub.test. 300 CNAME www.stub.test.
ours.stub.test. 300 CNAME app.${ZONE}
`;

test("a stub zone's hints are asked without recursion, and the answer is cached", async () => {
  await using hint = await startScriptedUpstream({ handler: authority(STUB) });
  await using world = await forwarding({ table: "www.elsewhere.example. 60 A 198.51.100.1", isPatient: true });
  await create(world.api, "/stub-zones", { domain: "stub.test.", hints: [`127.0.0.1:${hint.port}`] });
  await world.record({ name: "app", type: "A", values: [{ value: "10.0.0.1" }] });
  for (const _ of [1, 2]) {
    const { data, flags } = await world.ask("www.stub.test A");
    assert.deepEqual([data, flags], [["www.stub.test. A 192.0.2.1"], "rd ra"]);
  }
  assert.equal(hint.queries.length, 1);
  assert.ok(
    hint.queries.every(({ message }) => (message.flags & 0x100) === 0),
    "RD is not set",
  );
  assert.deepEqual((await world.ask("in.stub.test A")).data, [
    "in.stub.test. CNAME www.stub.test.",
    "www.stub.test. A 192.0.2.1",
  ]);
  assert.deepEqual((await world.ask("out.stub.test A")).data, [
    "out.stub.test. CNAME www.elsewhere.example.",
    "www.elsewhere.example. A 198.51.100.1",
  ]);
  assert.deepEqual((await world.ask("ours.stub.test A")).data.at(-1), `app.${ZONE} A 10.0.0.1`);
  const missing = await world.ask("missing.stub.test A");
  assert.equal(missing.rcode, "NXDOMAIN");
  assert.match(missing.authority.join(), /^stub\.test\. \d+ SOA /);
});

test("referrals below the stub zone are followed with their glue, and remembered", async (t) => {
  if (!requireRoot(t)) return;
  await using child = await startScriptedUpstream({
    handler: authority(`
child.stub.test. 3600 SOA ns.child.stub.test. host.stub.test. 1 7200 900 1209600 60
a.child.stub.test. 300 A 192.0.2.11
b.child.stub.test. 300 A 192.0.2.12`),
    addresses: ["127.9.0.1"],
    port: 53,
  });
  await using hint = await startScriptedUpstream({
    handler: referring(
      authority(STUB),
      "child.stub.test.",
      ";; AUTHORITY\nchild.stub.test. 300 NS ns.child.stub.test.\n;; ADDITIONAL\nns.child.stub.test. 300 A 127.9.0.1",
    ),
  });
  await using world = await forwarding({ isPatient: true });
  await create(world.api, "/stub-zones", { domain: "stub.test.", hints: [`127.0.0.1:${hint.port}`] });
  assert.deepEqual((await world.ask("a.child.stub.test A")).data, ["a.child.stub.test. A 192.0.2.11"]);
  assert.deepEqual((await world.ask("b.child.stub.test A")).data, ["b.child.stub.test. A 192.0.2.12"]);
  assert.equal(hint.queries.length, 1, "the second question went to the child at once");
  assert.equal(child.queries.length, 2);
});

test("referrals upwards, sideways, to themselves or without end are not followed for ever", async () => {
  const referrals = [
    ";; AUTHORITY\ntest. 300 NS ns.evil.example.\n;; ADDITIONAL\nns.evil.example. 300 A 127.0.0.1",
    ";; AUTHORITY\nother.test. 300 NS ns.other.test.\n;; ADDITIONAL\nns.other.test. 300 A 127.0.0.1",
    ";; AUTHORITY\nstub.test. 300 NS ns.stub.test.\n;; ADDITIONAL\nns.stub.test. 300 A 127.0.0.1",
    ";; AUTHORITY\nx.stub.test. 300 NS ns.x.stub.test.",
  ];
  for (const text of referrals) {
    await using hint = await startScriptedUpstream({ handler: () => ({ kind: "answer", flags: 0x8000, text }) });
    await using world = await forwarding();
    await create(world.api, "/stub-zones", { domain: "stub.test.", hints: [`127.0.0.1:${hint.port}`] });
    assert.equal((await world.ask("a.x.stub.test A", { timeoutMs: 10_000 })).rcode, "SERVFAIL", text);
    assert.ok(hint.queries.length < 40, `${hint.queries.length} queries`);
  }
});

test("what a stub zone's servers say of names outside of it is not believed", async () => {
  await using hint = await startScriptedUpstream({
    handler: () => ({
      kind: "answer",
      flags: AA,
      text: "a.stub.test. 60 CNAME bank.example.\nbank.example. 60 A 203.0.113.66",
    }),
  });
  await using world = await forwarding({ table: "bank.example. 60 A 192.0.2.1" });
  await create(world.api, "/stub-zones", { domain: "stub.test.", hints: [`127.0.0.1:${hint.port}`] });
  assert.deepEqual((await world.ask("a.stub.test A")).data, [
    "a.stub.test. CNAME bank.example.",
    "bank.example. A 192.0.2.1",
  ]);
});

test("below a delegation of ours: followed where recursion is offered and wanted, else a referral", async (t) => {
  if (!requireRoot(t)) return;
  await using child = await startScriptedUpstream({
    handler: authority(
      `sub.${ZONE} 3600 SOA ns.sub.${ZONE} host.sub.${ZONE} 1 7200 900 1209600 60\nwww.sub.${ZONE} 300 A 192.0.2.21`,
    ),
    addresses: ["127.9.0.2"],
    port: 53,
  });
  await using world = await forwarding({ isPatient: true });
  await world.record({ name: "sub", type: "NS", values: [{ value: `ns.sub.${ZONE}` }] });
  await world.record({ name: "ns.sub", type: "A", values: [{ value: "127.9.0.2" }] });
  assert.deepEqual((await world.ask(`www.sub.${ZONE} A`)).data, [`www.sub.${ZONE} A 192.0.2.21`]);
  assert.equal(child.queries.length, 1);
  const referral = await world.ask(`www.sub.${ZONE} A`, { rd: false });
  assert.deepEqual([referral.rcode, referral.data], ["NOERROR", []]);
  assert.match(referral.authority.join(), /^sub\.own\.test\. 300 NS ns\.sub\.own\.test\.$/);
  await world.put("/forwarders/default", { enabled: false });
  const offered = await world.ask(`www.sub.${ZONE} A`);
  assert.deepEqual([offered.flags, offered.data], ["rd", []], "no recursion is offered");
});

test("stub zones and forwarders are validated by their fields, and one domain has one of both", async () => {
  await using world = await forwarding();
  const refused = async (path: string, json: object, status: number, pointer: string) => {
    const answer = await world.api.ask("POST", path, json);
    assert.deepEqual([answer.status, answer.body.errors?.[0]?.pointer], [status, pointer], JSON.stringify(answer.body));
  };
  const upstreams = ["192.0.2.1"];
  await refused("/forwarders", { domain: "partner.example", upstreams }, 400, "/domain");
  await refused("/forwarders", { domain: ".", upstreams }, 400, "/domain");
  await refused("/forwarders", { domain: "partner.example.", upstreams: [] }, 400, "/upstreams");
  for (const bad of [
    "",
    "1.2.3",
    "192.0.2.1:0",
    "192.0.2.1:99999",
    "[2001:db8::1",
    "tls://",
    "http://192.0.2.1",
    "a b",
    "tls://192.0.2.1#",
  ])
    await refused("/forwarders", { domain: "partner.example.", upstreams: ["192.0.2.1", bad] }, 400, "/upstreams/1");
  await refused("/stub-zones", { domain: "stub.test.", hints: ["tls://192.0.2.1"] }, 400, "/hints/0");
  const id = await create(world.api, "/forwarders", {
    domain: "partner.example.",
    upstreams: ["192.0.2.1", "[2001:db8::1]:5353", "dns.example:53", "tls://192.0.2.1:853#dns.example"],
  });
  await refused("/forwarders", { domain: "Partner.Example.", upstreams }, 409, "/domain");
  await refused("/stub-zones", { domain: "partner.example.", hints: ["192.0.2.1:53"] }, 409, "/domain");
  assert.equal((await world.api.ask("GET", `/forwarders/${id}`)).body.domain, "partner.example.");
  assert.equal((await world.api.ask("PUT", "/forwarders/default", { upstreams: [], enabled: true })).status, 400);
});

/** The blocklist: what it blocks, what it does not, and how it is replaced. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { signIn } from "./api-client.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { startForwarding, ZONE } from "./forward-world.ts";
import { create, figure } from "./notify-world.ts";

const forwarding = sharedForwarding();

const EDE_BLOCKED = 15;
const PUBLIC = `
public.example. 3600 SOA ns.public.example. host.public.example. 1 7200 900 1209600 60
www.public.example. 300 A 192.0.2.80
ads.public.example. 300 A 192.0.2.81
x.ads.public.example. 300 A 192.0.2.82
alias.public.example. 300 CNAME ads.public.example.
`;

test("a listed name and all below it is NXDOMAIN with a SOA and EDE 15, and what is beside it is not", async () => {
  await using world = await forwarding({ table: PUBLIC });
  const blockedBefore = await figure(world.node, "svc_blocked_total");
  assert.deepEqual(await world.put("/blocklist", { domains: ["ADS.public.example"] }), { count: 1 });
  for (const name of ["ads.public.example", "x.ads.public.example", "no.such.ads.public.example"]) {
    for (const how of [{}, { tcp: true }] as const) {
      const { rcode, flags, answer, authority, ede } = await world.ask(`${name} A`, how);
      assert.deepEqual([rcode, flags, answer, ede], ["NXDOMAIN", "rd ra", [], EDE_BLOCKED], name);
      assert.match(authority.join(), /^ads\.public\.example\. 60 SOA /);
    }
  }
  assert.equal((await world.ask("www.public.example A")).rcode, "NOERROR");
  assert.equal((await world.ask("public.example SOA")).rcode, "NOERROR");
  assert.ok(!world.asked().some((question) => question.includes("ads.")), "nobody else hears of blocked names");
  assert.equal(await figure(world.node, "svc_blocklist_domains"), 1);
  assert.equal((await figure(world.node, "svc_blocked_total")) - blockedBefore, 6);
});

test("a list takes effect at once, also for what has been forwarded and remembered, and so does another", async () => {
  await using world = await forwarding({ table: PUBLIC });
  const rcodes = async () => [
    (await world.ask("ads.public.example A")).rcode,
    (await world.ask("www.public.example A")).rcode,
  ];
  assert.deepEqual(await rcodes(), ["NOERROR", "NOERROR"]);
  for (let round = 0; round < 3; round++) {
    await world.put("/blocklist", { domains: ["ads.public.example."] });
    assert.deepEqual(await rcodes(), ["NXDOMAIN", "NOERROR"]);
    await world.put("/blocklist", { domains: ["www.public.example."] });
    assert.deepEqual(await rcodes(), ["NOERROR", "NXDOMAIN"]);
    await world.put("/blocklist", { domains: [] });
    assert.deepEqual(await rcodes(), ["NOERROR", "NOERROR"]);
  }
});

test("it comes ahead of forwarders, and behind zones of ours and overrides", async () => {
  await using partner = await startScriptedUpstream({ handler: tableHandler("x.partner.example. 60 A 198.51.100.1") });
  await using world = await forwarding({ table: PUBLIC });
  await world.record({ name: "www", type: "A", values: [{ value: "10.0.0.1" }] });
  await create(world.api, "/forwarders", { domain: "partner.example.", upstreams: [`127.0.0.1:${partner.port}`] });
  await create(world.api, "/overrides", { name: "pin.ads.example.", type: "A", values: [{ value: "10.0.0.2" }] });
  await world.put("/blocklist", { domains: ["partner.example", "ads.example", ZONE, "test"] });
  assert.equal((await world.ask("x.partner.example A")).rcode, "NXDOMAIN");
  assert.equal(partner.queries.length, 0);
  assert.deepEqual((await world.ask("pin.ads.example A")).data, ["pin.ads.example. A 10.0.0.2"]);
  assert.equal((await world.ask("other.ads.example A")).rcode, "NXDOMAIN");
  assert.deepEqual((await world.ask(`www.${ZONE} A`)).data, [`www.${ZONE} A 10.0.0.1`]);
  const missing = await world.ask(`missing.${ZONE} A`);
  assert.deepEqual([missing.rcode, missing.ede], ["NXDOMAIN", undefined]);
  assert.equal((await world.ask("else.test A")).ede, EDE_BLOCKED);
});

test("an alias to a listed name does not lead to it, ours as little as one that was forwarded", async () => {
  await using world = await forwarding({ table: PUBLIC });
  await world.record({ name: "ours", type: "CNAME", values: [{ value: "ads.public.example." }] });
  const data = async (name: string) => (await world.ask(`${name} A`)).data.join();
  assert.match(await data(`ours.${ZONE}`), /192\.0\.2\.81/);
  assert.match(await data("alias.public.example"), /192\.0\.2\.81/);
  await world.put("/blocklist", { domains: ["ads.public.example"] });
  for (const name of [`ours.${ZONE}`, "alias.public.example"]) {
    const { rcode, data, ede } = await world.ask(`${name} A`);
    assert.deepEqual(
      [rcode, data, ede],
      ["NXDOMAIN", [`${name}${name.endsWith(".") ? "" : "."} CNAME ads.public.example.`], EDE_BLOCKED],
    );
  }
});

test("it blocks without any forwarder, with and without RD", async () => {
  await using world = await forwarding({ forwards: false });
  await world.put("/blocklist", { domains: ["ads.public.example"] });
  const blocked = await world.ask("x.ads.public.example A");
  assert.deepEqual([blocked.rcode, blocked.ede], ["NXDOMAIN", EDE_BLOCKED]);
  assert.equal((await world.ask("x.ads.public.example A", { rd: false })).rcode, "NXDOMAIN");
  assert.equal((await world.ask("www.public.example A")).rcode, "REFUSED");
});

test("GET shows the list; PUT with faults changes nothing; the list outlives the node", async () => {
  await using first = await startForwarding({ table: PUBLIC });
  assert.deepEqual((await first.api.ask("GET", "/blocklist")).body, { count: 0, domains: [] });
  await first.put("/blocklist", { domains: ["b.example", "a.example."] });
  const list = { count: 2, domains: ["a.example.", "b.example."] };
  assert.deepEqual((await first.api.ask("GET", "/blocklist")).body, list);
  const refused = await first.api.ask("PUT", "/blocklist", { domains: ["c.example", "*.d.example", "", 3] });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.errors[0].pointer, "/domains/3");
  const named = await first.api.ask("PUT", "/blocklist", { domains: ["c.example", "*.d.example", ""] });
  assert.deepEqual(
    named.body.errors.map(({ pointer }: { pointer: string }) => pointer),
    ["/domains/1", "/domains/2"],
  );
  assert.deepEqual((await first.api.ask("PUT", "/blocklist?dry_run=true", { domains: ["c.example"] })).body, {
    count: 1,
  });
  assert.deepEqual((await first.api.ask("GET", "/blocklist")).body, list);
  assert.equal((await first.ask("x.a.example A")).rcode, "NXDOMAIN");
  await first.put("/blocklist", list);
  const { directory } = first.node;
  await first.node.child.stop();
  await using second = await startForwarding({ table: PUBLIC, directory });
  assert.equal((await second.ask("x.a.example A")).ede, EDE_BLOCKED);
  await using api = await signIn(second.node.api);
  assert.deepEqual((await api.ask("GET", "/blocklist")).body, list);
});

test("100,000 names at once: all of them are blocked, and own names are answered meanwhile", async () => {
  await using world = await forwarding({ table: PUBLIC });
  await world.record({ name: "www", type: "A", values: [{ value: "10.0.0.1" }] });
  const domains = Array.from({ length: 100_000 }, (_, index) => `host-${index}.list.example.`);
  let isDone = false;
  const putting = world.put("/blocklist", { domains }).finally(() => {
    isDone = true;
  });
  let asked = 0;
  while (!isDone) {
    assert.equal((await world.ask(`www.${ZONE} A`)).rcode, "NOERROR");
    asked++;
  }
  assert.deepEqual(await putting, { count: domains.length });
  assert.ok(asked > 0);
  for (let index = 0; index < domains.length; index += 997) {
    assert.equal((await world.ask(`x.host-${index}.list.example. A`)).ede, EDE_BLOCKED);
  }
  const shown = (await world.api.ask("GET", "/blocklist")).body;
  assert.equal(shown.count, domains.length);
  assert.deepEqual(shown.domains.toSorted(), domains.toSorted());
});

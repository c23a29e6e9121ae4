/** Where a name is answered: by an override, a zone of ours, a forwarder, the default forwarder or nobody. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { waitFor } from "../support/wait.ts";
import { sharedForwarding } from "./forward-shared.ts";
import { assertTtls, startForwarding, ZONE } from "./forward-world.ts";
import { create } from "./notify-world.ts";

const forwarding = sharedForwarding();

const PUBLIC = `
public.example. 3600 SOA ns.public.example. host.public.example. 1 7200 900 1209600 60
www.public.example. 300 A 192.0.2.80
www.public.example. 300 AAAA 2001:db8::80
text.public.example. 300 TXT "hello" "world"
alias.public.example. 300 CNAME www.public.example.
mail.public.example. 300 MX 10 www.public.example.
odd.public.example. 300 TYPE4321 \\# 3 010203
storage.public.example. 60 CNAME storage.${ZONE}
deep.public.example. 60 CNAME mid.public.example.
mid.public.example. 60 CNAME nowhere.${ZONE}
steered.public.example. 60 CNAME partner.example.
`;

test("the default forwarder answers what we do not hold: RA, no AA, data of any type", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  const www = await world.ask("www.public.example A");
  assert.deepEqual([www.rcode, www.flags, www.data], ["NOERROR", "rd ra", ["www.public.example. A 192.0.2.80"]]);
  assertTtls(www, [300]);
  assert.deepEqual((await world.ask("www.public.example AAAA")).data, ["www.public.example. AAAA 2001:db8::80"]);
  assert.deepEqual((await world.ask("text.public.example TXT")).data, ['text.public.example. TXT "hello" "world"']);
  assert.deepEqual((await world.ask("mail.public.example MX")).data, [
    "mail.public.example. MX 10 www.public.example.",
  ]);
  assert.deepEqual((await world.ask("odd.public.example TYPE4321")).data, [
    "odd.public.example. TYPE4321 \\# 3 010203",
  ]);
  const alias = await world.ask("alias.public.example A", { tcp: true });
  assert.deepEqual(alias.data, ["alias.public.example. CNAME www.public.example.", "www.public.example. A 192.0.2.80"]);
});

test("what does not exist there: NXDOMAIN and NODATA with the SOA, remembered", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  for (const _ of [1, 2]) {
    const missing = await world.ask("missing.public.example A");
    assert.deepEqual([missing.rcode, missing.flags, missing.data], ["NXDOMAIN", "rd ra", []]);
    assert.match(missing.authority.join(), /^public\.example\. \d+ SOA ns\.public\.example\./);
    const nodata = await world.ask("text.public.example A");
    assert.deepEqual([nodata.rcode, nodata.data], ["NOERROR", []]);
    assert.match(nodata.authority.join(), /^public\.example\. (60|[1-5]\d) SOA /);
  }
  assert.deepEqual(world.asked().toSorted(), ["missing.public.example. A", "text.public.example. A"]);
});

test("disabled, it is REFUSED; enabled and disabled again, live", async () => {
  await using world = await forwarding({ table: PUBLIC, forwards: false });
  assert.deepEqual([(await world.ask("www.public.example A")).rcode], ["REFUSED"]);
  await world.put("/forwarders/default", { upstreams: [`127.0.0.1:${world.upstream.port}`], enabled: true });
  assert.equal((await world.ask("www.public.example A")).rcode, "NOERROR");
  await world.put("/forwarders/default", { enabled: false });
  assert.equal((await world.ask("www.public.example A")).rcode, "REFUSED");
});

test("RD=0 is answered from the cache only, and REFUSED else", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  assert.equal((await world.ask("www.public.example A", { rd: false })).rcode, "REFUSED");
  await world.ask("www.public.example A");
  const cached = await world.ask("www.public.example A", { rd: false });
  assert.deepEqual([cached.rcode, cached.data], ["NOERROR", ["www.public.example. A 192.0.2.80"]]);
  assert.deepEqual(world.asked(), ["www.public.example. A"]);
});

test("the longest match wins over zones and forwarders together; an own zone wins at equal length", async () => {
  await using partner = await startScriptedUpstream({
    handler: tableHandler(
      `app.${ZONE} 60 A 198.51.100.1\ninside.sub.${ZONE} 60 A 198.51.100.2\nx.partner.example. 60 A 198.51.100.3`,
    ),
  });
  await using world = await forwarding({
    table: "x.partner.example. 60 A 203.0.113.1\ny.example. 60 A 203.0.113.2",
  });
  const upstreams = [`127.0.0.1:${partner.port}`];
  await world.record({ name: "app", type: "A", values: [{ value: "192.0.2.1" }] });
  await create(world.api, "/forwarders", { domain: ZONE, upstreams });
  await create(world.api, "/forwarders", { domain: `sub.${ZONE}`, upstreams });
  const id = await create(world.api, "/forwarders", { domain: "partner.example.", upstreams, comment: "partner" });
  assert.deepEqual((await world.ask(`app.${ZONE} A`)).data, [`app.${ZONE} A 192.0.2.1`]);
  assert.equal((await world.ask(`app.${ZONE} A`)).flags, "aa rd ra");
  assert.deepEqual((await world.ask(`inside.sub.${ZONE} A`)).data, [`inside.sub.${ZONE} A 198.51.100.2`]);
  assert.deepEqual((await world.ask("x.partner.example A")).data, ["x.partner.example. A 198.51.100.3"]);
  assert.deepEqual((await world.ask("y.example A")).data, ["y.example. A 203.0.113.2"]);
  assert.equal((await world.api.ask("DELETE", `/forwarders/${id}`)).status, 200);
  assert.deepEqual((await world.ask("x.partner.example A")).data, ["x.partner.example. A 203.0.113.1"]);
  const { body } = await world.api.ask("GET", "/zones");
  for (const zone of body.items) assert.equal((await world.api.ask("DELETE", `/zones/${zone.id}`)).status, 200);
  assert.deepEqual((await world.ask(`app.${ZONE} A`)).data, [`app.${ZONE} A 198.51.100.1`], "the zone is gone");
});

test("an alias of ours to a forwarded name is completed; AA is the first owner's", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  await world.record({ name: "web", type: "CNAME", values: [{ value: "alias.public.example." }] });
  await world.record({ name: "apex", type: "ALIAS", values: [{ value: "alias.public.example." }] });
  const web = await world.ask(`web.${ZONE} A`);
  assert.deepEqual(web.data, [
    `web.${ZONE} CNAME alias.public.example.`,
    "alias.public.example. CNAME www.public.example.",
    "www.public.example. A 192.0.2.80",
  ]);
  assert.match(web.flags, /^aa rd ra$/);
  assert.deepEqual((await world.ask(`apex.${ZONE} A`)).data, [`apex.${ZONE} A 192.0.2.80`]);
  assert.deepEqual((await world.ask(`apex.${ZONE} AAAA`)).data, [`apex.${ZONE} AAAA 2001:db8::80`]);
  assert.deepEqual((await world.ask(`apex.${ZONE} TXT`)).data, []);
});

test("a forwarded chain that ends in a zone of ours is answered from our live data", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  const id = await world.record({ name: "storage", type: "A", ttl: 60, values: [{ value: "10.0.0.1" }] });
  const first = await world.ask("storage.public.example A");
  assert.deepEqual(first.data, [`storage.public.example. CNAME storage.${ZONE}`, `storage.${ZONE} A 10.0.0.1`]);
  assert.equal(first.flags, "rd ra", "the first owner is not ours");
  await world.put(`/records/${id}`, { values: [{ value: "10.0.0.2" }] });
  const second = await world.ask("storage.public.example A");
  assert.deepEqual(second.data.at(-1), `storage.${ZONE} A 10.0.0.2`);
  const nowhere = await world.ask("deep.public.example A");
  assert.deepEqual([nowhere.rcode, nowhere.data.length], ["NXDOMAIN", 2]);
  assert.match(nowhere.authority.join(), /^own\.test\. /);
  await create(world.api, "/overrides", { name: "nowhere.own.test.", type: "A", values: [{ value: "10.9.9.9" }] });
  assert.deepEqual((await world.ask("deep.public.example A")).data.at(-1), `nowhere.${ZONE} A 10.9.9.9`);
  assert.deepEqual(world.asked(), ["storage.public.example. A", "deep.public.example. A"], "the chains were cached");
});

test("a chain into another forwarder's domain asks that one, also where the first has an answer of its own", async () => {
  await using partner = await startScriptedUpstream({ handler: tableHandler("partner.example. 60 A 198.51.100.3") });
  await using world = await forwarding({ table: `${PUBLIC}\npartner.example. 60 A 203.0.113.66` });
  await create(world.api, "/forwarders", { domain: "partner.example.", upstreams: [`127.0.0.1:${partner.port}`] });
  const { data } = await world.ask("steered.public.example A");
  assert.deepEqual(data, ["steered.public.example. CNAME partner.example.", "partner.example. A 198.51.100.3"]);
});

test("a zone that is made takes its names from the cache at once, and gives them back when it goes", async () => {
  await using world = await forwarding({ table: PUBLIC, isPatient: true });
  await world.ask("www.public.example A");
  await world.ask("alias.public.example A");
  const zone = await create(world.api, "/zones", { name: "public.example." });
  await create(world.api, `/zones/${zone}/records`, {
    name: "www",
    type: "A",
    ttl: 60,
    values: [{ value: "10.1.1.1" }],
  });
  assert.deepEqual((await world.ask("www.public.example A")).data, ["www.public.example. A 10.1.1.1"]);
  assert.equal((await world.ask("alias.public.example A")).rcode, "NXDOMAIN");
  assert.equal((await world.api.ask("DELETE", `/zones/${zone}`)).status, 200);
  assert.deepEqual((await world.ask("www.public.example A")).data, ["www.public.example. A 192.0.2.80"]);
});

test("forwarders survive a restart", async () => {
  await using world = await startForwarding({ table: PUBLIC, isPatient: true });
  await create(world.api, "/forwarders", {
    domain: "partner.example.",
    upstreams: [`127.0.0.1:${world.upstream.port}`],
  });
  const { directory } = world.node;
  await world.node.child.stop();
  await using again = await startForwarding({ forwards: false, directory });
  await waitFor("it forwards", 10_000, async () => (await again.tryAsk("www.public.example A"))?.rcode === "NOERROR");
  assert.deepEqual(
    (await again.api.ask("GET", "/forwarders")).body.items.map(({ domain }: { domain: string }) => domain),
    ["partner.example."],
  );
});

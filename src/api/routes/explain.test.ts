import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiReply, startApi } from "../../../tests/support/api.ts";
import { ALONE } from "../../../tests/support/commands.ts";
import { explainerOver } from "../../../tests/support/explainer.ts";
import { type HealthLab, openHealthLab } from "../../../tests/support/health-plane.ts";
import { openLab } from "../../../tests/support/zone-lab.ts";
import type { Explainer } from "../../commands/explain.ts";
import type { CommandContext } from "../../commands/run.ts";
import type { ZonePeers } from "../../commands/zones.ts";
import { ExplanationShape } from "../../model/explanation.ts";
import { checkShape } from "../../model/shape.ts";
import { openStorePublisher } from "../../publish/store-publisher.ts";
import { explainRoutes } from "./explain.ts";
import { overrideRoutes } from "./overrides.ts";
import { recordRoutes } from "./records.ts";
import { subnetMappingRoutes } from "./subnet-mappings.ts";
import { zoneRoutes } from "./zones.ts";

/** The routes over a store that is published, in the region eu. */
async function givenNode(peers: ZonePeers = ALONE) {
  const lab = openLab([]);
  let health: HealthLab | undefined;
  let explainer: Explainer | undefined;
  const explain: Explainer = (question) => explainer?.(question) ?? assert.fail("asked too early");
  const routesOf = (context: CommandContext) => [
    ...zoneRoutes(context, peers),
    ...recordRoutes(context),
    ...overrideRoutes(context),
    ...subnetMappingRoutes(context),
    ...explainRoutes(explain),
  ];
  const api = await startApi(routesOf);
  health = openHealthLab(api.store, { shared: lab.shared });
  const { store } = api;
  const { gates } = health;
  const publisher = openStorePublisher({ store, writer: lab.writer, log: () => undefined, region: "eu", gates });
  await publisher.start();
  explainer = explainerOver({ store, health, shared: lab.shared, regionName: publisher.regionName });
  const make = async (path: string, json: object) => {
    const reply = await api.ask("POST", path, { json });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.id;
  };
  return {
    lab,
    store,
    make,
    ask: (query: string, as = "readonly") => api.ask("GET", `/explain?${query}`, { as }),
    [Symbol.asyncDispose]: async () => {
      publisher[Symbol.dispose]();
      health[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

type Reasons = { readonly kind: string }[];
const selectionOf = ({ body }: ApiReply) => body.reasons.find(({ kind }: Reasons[number]) => kind === "selection");

test("zones, records, mappings, regions and policies are named as the store has them", async () => {
  await using node = await givenNode();
  const zoneId = await node.make("/zones", { name: "corp.example.", lb_policy: { method: "region" } });
  const mapping = await node.make("/subnet-mappings", { subnet: "10.1.0.0/16", region_id: "us" });
  await node.make("/subnet-mappings", { subnet: "10.0.0.0/8", region_id: "eu" });
  const values = [{ value: "10.1.2.3" }, { value: "192.0.2.1", region: "eu" }, { value: "192.0.2.2" }];
  const record = await node.make(`/zones/${zoneId}/records`, { name: "www", type: "A", values });
  await node.make(`/zones/${zoneId}/records`, { name: "*.apps", type: "A", values, lb_policy: { method: "failover" } });
  const own = await node.make("/overrides", { name: "far.example.", type: "A", values });

  const reply = await node.ask("name=WWW.corp.example&client=10.1.9.9");
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(checkShape(ExplanationShape, reply.body), []);
  const choice = selectionOf(reply);
  assert.deepEqual([choice.record_id, choice.policy, choice.method], [record, "zone", "region"]);
  assert.deepEqual(choice.client, { region: "us", source: "mapping", subnet: "10.1.0.0/16", mapping_id: mapping });
  const regions = choice.candidates.map(({ value, region }: Record<string, string>) => [value, region]);
  assert.deepEqual(regions, [
    ["10.1.2.3", "us"],
    ["192.0.2.1", "eu"],
    ["192.0.2.2", undefined],
  ]);
  assert.deepEqual(reply.body.answer.answer, ["www.corp.example. 3600 IN A 10.1.2.3"]);
  const [route] = reply.body.reasons;
  assert.deepEqual([route.by, route.zone, route.zone_id], ["zone", "corp.example.", zoneId]);
  assert.deepEqual(node.lab.ask("www.corp.example. A", { client: Uint8Array.of(10, 1, 9, 9) }).slice(1), [
    "answer www.corp.example. 3600 IN A 10.1.2.3",
  ]);

  const wild = selectionOf(await node.ask("name=x.apps.corp.example.&type=A&client=2001:db8::1"));
  assert.deepEqual([wild.policy, wild.method, wild.name], ["record", "failover", "x.apps.corp.example."]);
  await node.make(`/zones/${zoneId}/records`, {
    ...{ name: "@", type: "MX", priority: 10 },
    values: [{ value: "www.corp.example." }, { value: "mx.apps.corp.example." }],
  });
  const mail = (await node.ask("name=corp.example&type=MX")).body.reasons;
  const beside = mail.filter(({ section }: { readonly section?: string }) => section === "additional");
  assert.deepEqual(
    beside.map(({ name, record_id }: Record<string, string>) => [name, record_id]),
    [
      ["www.corp.example.", record],
      ["mx.apps.corp.example.", wild.record_id],
    ],
  );
  const { body } = await node.ask("name=far.example");
  assert.deepEqual([body.reasons[0].by, body.reasons[1].record_id], ["override", own]);
  assert.deepEqual(body.question, { name: "far.example.", type: "A", client: "127.0.0.1" });
});

test("names are taken as zones have them, with escapes and without the last dot", async () => {
  await using node = await givenNode();
  const zoneId = await node.make("/zones", { name: "corp.example." });
  const values = [{ value: "192.0.2.1" }];
  await node.make(`/zones/${zoneId}/records`, { name: "a\\.b", type: "A", values });
  for (const name of ["a\\.b.corp.example.", "A\\046b.corp.example"]) {
    const { body } = await node.ask(`name=${encodeURIComponent(name)}`);
    assert.deepEqual([body.question.name, body.answer.rcode], ["a\\.b.corp.example.", "NOERROR"]);
  }
  const root = await node.ask("name=.&type=NS");
  assert.deepEqual([root.status, root.body.answer.rcode], [200, "REFUSED"]);
});

test("what cannot be asked is refused with its parameter", async () => {
  await using node = await givenNode();
  const long = `${"a".repeat(63)}.`.repeat(4);
  const wrong: readonly (readonly [query: string, pointer: string])[] = [
    ["", "?name"],
    ["name=", "?name"],
    ["name=a..b", "?name"],
    ["name=%40", "?name"],
    ["name=b%C3%BCro.example", "?name"],
    ["name=a%20b.example", "?name"],
    ["name=a%00b.example", "?name"],
    ["name=a\\999.example", "?name"],
    ["name=a\\", "?name"],
    [`name=${"a".repeat(64)}.example`, "?name"],
    [`name=${long}example`, "?name"],
    [`name=${"a.".repeat(2000)}`, "?name"],
    ["name=a.example&name=b.example", "?name"],
    ["name=a.example&type=", "?type"],
    ["name=a.example&type=a", "?type"],
    ["name=a.example&type=AXFR", "?type"],
    ["name=a.example&type=ALIAS", "?type"],
    ["name=a.example&type=TYPE1", "?type"],
    ["name=a.example&client=", "?client"],
    ["name=a.example&client=localhost", "?client"],
    ["name=a.example&client=10.0.0.0/8", "?client"],
    ["name=a.example&client=10.0.0.01", "?client"],
    ["name=a.example&client=10.0.0.1:53", "?client"],
    ["name=a.example&client=fe80::1%25eth0", "?client"],
    ["name=a.example&client=::ffff:10.0.0.1", "?client"],
    ["name=a.example&client=[::1]", "?client"],
    ["name=a.example&class=CH", "?class"],
  ];
  for (const [query, pointer] of wrong) {
    const { status, body, text } = await node.ask(query);
    const pointers = body.errors?.map((error: { readonly pointer: string }) => error.pointer);
    assert.deepEqual([status, body.code, pointers], [400, "invalid_request", [pointer]], `${query}: ${text}`);
  }
});

test("a name in a zone that is pending is told of it, whoever else answers", async () => {
  let others = 0;
  await using node = await givenNode({ peersAlive: () => others });
  await node.make("/zones", { name: "corp.example." });
  others = 1;
  const [nearer, lone] = [
    await node.make("/zones", { name: "new.corp.example." }),
    await node.make("/zones", { name: "new.example." }),
  ];
  const routeOf = async (name: string) => {
    const { body } = await node.ask(`name=${encodeURIComponent(name)}`);
    assert.deepEqual(checkShape(ExplanationShape, body), []);
    const [{ text, by, zone, pending_zone, pending_zone_id }] = body.reasons;
    assert.equal(/; the zone (\S+) is pending/.exec(text)?.[1], pending_zone);
    return [by, zone, pending_zone, pending_zone_id];
  };
  assert.deepEqual(await routeOf("www.new.corp.example"), ["zone", "corp.example.", "new.corp.example.", nearer]);
  assert.deepEqual(await routeOf("www.new.example"), ["nobody", undefined, "new.example.", lone]);
  for (const name of ["new.corp.example.net", String.raw`www.x\.new.example`, "example", "."]) {
    assert.deepEqual(await routeOf(name), ["nobody", undefined, undefined, undefined], name);
  }
  await node.store.write((tx) => tx.setState("new.corp.example.", "active"));
  assert.deepEqual(await routeOf("new.corp.example"), ["zone", "new.corp.example.", undefined, undefined]);
});

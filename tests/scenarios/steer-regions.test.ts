/** Region and geo-failover: clients ask from different addresses, and subnet mappings say in which regions these lie. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "./notify-world.ts";
import {
  type Backends,
  httpTemplate,
  type Steering,
  sharedSteering,
  startBackends,
  tally,
  untilAnswered,
  untilJudged,
  valuesOf,
} from "./steer-world.ts";

const [EU, US, AP, NOWHERE] = ["127.0.2.1", "127.0.2.2", "127.0.2.3", "127.0.2.4"] as const;
const VALUES = [
  { value: EU, region: "eu" },
  { value: US, region: "us" },
  // Blank: a mapping has it in ap, and there is none for the last.
  { value: AP },
  { value: NOWHERE },
];
/** No mapping covers the first, which so lies in the node's own region; the last lies in a longer prefix than the second. */
const CLIENT = { eu: { from: "127.0.0.1" }, us: { from: "127.0.9.1" }, ap: { from: "127.0.9.200" } } as const;
const MAPPINGS = { "127.0.9.0/24": "us", "127.0.9.128/25": "ap", "127.0.2.3/32": "ap" };

/** It hears of networks from one address only, from which no other test asks. */
const steering = sharedSteering({ env: { SVC_NODE_REGION: "eu", SVC_DNS_CLIENT_SUBNET_SOURCES: "127.0.0.5/32" } });

async function start(): Promise<Steering> {
  const world = await steering();
  for (const [subnet, region_id] of Object.entries(MAPPINGS)) await map(world, subnet, region_id);
  return world;
}

function map({ api }: Steering, subnet: string, region_id: string): Promise<string> {
  return create(api, "/subnet-mappings", { subnet, region_id });
}

function gated(world: Steering, { port }: Backends, name: string, lb_policy: object): Promise<string> {
  return world.record({ name, type: "A", values: VALUES, lb_policy, health_check_template: httpTemplate(port) });
}

/** What the clients of the three regions get, in one order. */
async function perRegion(world: Steering, name: string): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const [region, client] of Object.entries(CLIENT)) {
    answers[region] = (await world.ask(name, client)).toSorted().join(" ");
  }
  return answers;
}

test("a client gets its own region, then those preferred, then any; all dead is its own region again", async () => {
  await using backends = await startBackends(EU, US, AP, NOWHERE);
  await using world = await start();
  const id = await gated(world, backends, "near", { method: "region", region_preference: ["us", "ap"] });
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: US, ap: AP });
  await backends.at(EU).kill();
  await untilAnswered(world, "near", [US], CLIENT.eu);
  assert.deepEqual(await perRegion(world, "near"), { eu: US, us: US, ap: AP });
  await backends.at(US).kill();
  await untilAnswered(world, "near", [AP], CLIENT.us);
  assert.deepEqual(await perRegion(world, "near"), { eu: AP, us: AP, ap: AP });
  await backends.at(AP).kill();
  await untilAnswered(world, "near", [NOWHERE], CLIENT.ap);
  assert.deepEqual(await perRegion(world, "near"), { eu: NOWHERE, us: NOWHERE, ap: NOWHERE });
  await backends.at(NOWHERE).kill();
  await untilAnswered(world, "near", [EU], CLIENT.eu);
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: US, ap: AP }, "fail open chooses by region still");
  await untilJudged(world, id, { [EU]: "unhealthy", [US]: "unhealthy", [AP]: "unhealthy", [NOWHERE]: "unhealthy" });
  await backends.at(US).revive();
  await untilAnswered(world, "near", [US], CLIENT.ap);
  assert.deepEqual(await perRegion(world, "near"), { eu: US, us: US, ap: US });
});

test("geo-failover rotates within the client's region, leaves it only when all of it is dead, and comes back", async () => {
  const second = "127.0.2.5";
  await using backends = await startBackends(EU, US, AP, second);
  await using world = await start();
  await world.record({
    name: "geo",
    type: "A",
    values: [...VALUES.slice(0, 3), { value: second, region: "us" }],
    lb_policy: { method: "geo-failover", region_preference: ["ap"] },
    health_check_template: httpTemplate(backends.port),
  });
  const both = [
    [`${second} ${US}`, 10],
    [`${US} ${second}`, 10],
  ].toSorted();
  assert.deepEqual([...(await tally(world, "geo", 20, CLIENT.us))].toSorted(), both);
  assert.deepEqual(await perRegion(world, "geo"), { eu: EU, us: `${US} ${second}`, ap: AP });
  await backends.at(US).kill();
  await untilAnswered(world, "geo", [second], CLIENT.us);
  await backends.at(second).kill();
  await untilAnswered(world, "geo", [AP], CLIENT.us);
  assert.deepEqual(await perRegion(world, "geo"), { eu: EU, us: AP, ap: AP });
  await backends.at(US).revive();
  await untilAnswered(world, "geo", [US], CLIENT.us);
});

test("a mapping that is made, changed or taken away holds from the next answer on, for clients and for values", async () => {
  await using world = await steering();
  await world.record({ name: "near", type: "A", values: VALUES.slice(0, 3), lb_policy: { method: "region" } });
  assert.deepEqual(
    await perRegion(world, "near"),
    { eu: EU, us: EU, ap: EU },
    "without mappings all are in the node's",
  );
  const clients = await map(world, "127.0.9.0/24", "us");
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: US, ap: US });
  const apart = await map(world, "127.0.9.128/25", "ap");
  const all = [EU, US, AP].join(" ");
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: US, ap: all }, "no value lies in ap yet");
  await map(world, "127.0.2.3/32", "ap");
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: US, ap: AP });
  await map(world, "127.0.9.0/24", "eu");
  assert.deepEqual(await perRegion(world, "near"), { eu: EU, us: EU, ap: AP }, "the same subnet again is replaced");
  await map(world, "127.0.2.3/32", "eu");
  assert.deepEqual(await perRegion(world, "near"), { eu: `${EU} ${AP}`, us: `${EU} ${AP}`, ap: all });
  for (const id of [clients, apart]) {
    assert.equal((await world.api.ask("DELETE", `/subnet-mappings/${id}`)).status, 200);
  }
  assert.deepEqual(await perRegion(world, "near"), { eu: `${EU} ${AP}`, us: `${EU} ${AP}`, ap: `${EU} ${AP}` });
});

test("the network that a trusted resolver names decides, with the prefix that the answer is for; others' is not heard", async () => {
  await using world = await steering();
  await world.record({ name: "near", type: "A", values: VALUES.slice(0, 2), lb_policy: { method: "region" } });
  await world.record({ name: "static", type: "A", values: valuesOf("192.0.2.1") });
  await map(world, "10.20.0.0/16", "us");
  const network = "10.20.30.0/24";
  assert.deepEqual(await world.ask("near", { from: "127.0.0.5", network }), [US]);
  assert.deepEqual(await world.ask("near", { from: "127.0.0.5", network: "10.21.30.0/24" }), [EU]);
  assert.deepEqual(await world.ask("near", { from: "127.0.0.6", network }), [EU], "nobody trusts this one");
  const told = async (name: string, from: string) => {
    const lines = await world.dig("-b", from, "+noshort", "+comments", `+subnet=${network}`, name, "A");
    return lines.find((line) => line.includes("CLIENT-SUBNET"))?.replace(/^; */, "");
  };
  assert.equal(await told("near.steer.test.", "127.0.0.5"), "CLIENT-SUBNET: 10.20.30.0/24/16");
  assert.equal(await told("static.steer.test.", "127.0.0.5"), "CLIENT-SUBNET: 10.20.30.0/24/0");
  assert.equal(await told("near.steer.test.", "127.0.0.6"), undefined);
});

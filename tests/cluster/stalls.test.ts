/** Nodes that stand still: a moment is no event, longer is a death that ends, and a zone that is new waits for them. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after, test } from "node:test";
import { type ApiClient, signIn } from "../scenarios/api-client.ts";
import { create, figure } from "../scenarios/notify-world.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { type ClusterNode, startCluster, statusesOf, threeOf, untilAgreed, untilAnswers } from "./cluster-world.ts";

const STALL_MS = 1_200;
/** A machine with other work makes a stall a longer one, and a look a late one, now and then. */
const ATTEMPTS = 20;
const SOA = 6;
const REFUSED = 5;

const cluster = await startCluster(3);
after(() => cluster[Symbol.asyncDispose]());
const [a, b, c] = threeOf(cluster);

const www = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
const stop = ({ child }: ClusterNode) => process.kill(child.pid, "SIGSTOP");
const goOn = ({ child }: ClusterNode) => process.kill(child.pid, "SIGCONT");
const saidOf = (words: string) =>
  cluster.nodes.flatMap((node) => node.messages()).filter((line) => line.endsWith(words)).length;

async function untilStatus(api: ApiClient, id: string, status: string): Promise<void> {
  await waitFor(`${id} is ${status}`, 20_000, async () => (await statusesOf(api))[id] === status);
}

async function untilPassed(ms: number): Promise<void> {
  const startMs = performance.now();
  await waitFor("time passes", ms, () => performance.now() - startMs >= ms, 2);
}

async function soaOf({ dns: [server] }: ClusterNode, zone: string) {
  assert.ok(server);
  const response = await exchangeUdp(server, encodeQuery({ name: zone, type: SOA }));
  assert.ok(response, "no answer");
  const { rcode, answer } = decodeMessage(response);
  return { rcode, serial: answer[0] === undefined ? undefined : serialIn(answer[0].rdata) };
}

/** The first of the five numbers that an SOA record ends with. */
const serialIn = (rdata: string) => Buffer.from(rdata, "hex").subarray(-20).readUInt32BE(0);

test("a node that stands still for 1.2 seconds is neither dead nor gone", async () => {
  for (let attempt = 1; ; attempt++) {
    const suspicions = saidOf("is suspected to be unreachable");
    const probes = await figure(a, "svc_cluster_probes_total");
    stop(c);
    await untilPassed(STALL_MS);
    goOn(c);
    // What it would have brought about is there by now.
    await waitFor("further probes", 10_000, async () => (await figure(a, "svc_cluster_probes_total")) >= probes + 8);
    assert.equal(saidOf("is unreachable") + saidOf(" left"), 0);
    if (saidOf("is suspected to be unreachable") === suspicions) break;
    assert.ok(attempt < ATTEMPTS);
  }
  await using api = await signIn(a.api);
  assert.deepEqual(await statusesOf(api), { a: "alive", b: "alive", c: "alive" });
});

test("a node that stands still for long is dead, and alive again with what it took before and what it missed", async () => {
  await using atA = await signIn(a.api);
  await using atC = await signIn(c.api);
  const zone = await create(atA, "/zones", { name: "long.test." });
  await waitFor("c has it", 10_000, async () => (await atC.ask("GET", `/zones/${zone}`)).status === 200);
  // It is acknowledged, and its peers may not have heard of it when the node stops.
  await create(atC, `/zones/${zone}/records`, { ...www, name: "last" });
  stop(c);
  await untilStatus(atA, "c", "dead");
  await create(atA, `/zones/${zone}/records`, www);
  await untilAnswers(b, "www.long.test", ["192.0.2.1"]);
  const { body } = await atA.ask("GET", "/cluster/consistency");
  assert.equal(body.agrees, true, "who is dead does not count");
  assert.equal(body.nodes.find(({ id }: { id: string }) => id === "c").answered, false);
  assert.equal(await figure(a, 'svc_cluster_members{state="dead"}'), 1);
  goOn(c);
  await untilStatus(atA, "c", "alive");
  for (const node of cluster.nodes) {
    for (const name of ["www.long.test", "last.long.test"]) await untilAnswers(node, name, ["192.0.2.1"]);
  }
  await untilAgreed(a);
  assert.equal(await figure(a, 'svc_cluster_members{state="alive"}'), 3);
});

/** Makes a zone while `c` stands still, until that was seen before `c` was dead; its id. */
async function pendingWhile(api: ApiClient, make: (name: string) => Promise<string>): Promise<[string, string]> {
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    const name = `${make.name}${attempt}.test`;
    stop(c);
    const id = await make(name);
    const { status } = (await api.ask("GET", `/zones/${id}`)).body;
    const seen = await Promise.all([a, b].map(async (node) => (await soaOf(node, name)).rcode));
    const waiting = await figure(a, "svc_cluster_zones_pending");
    const standing = (await statusesOf(api)).c;
    if (standing === "alive" || standing === "suspect") {
      assert.equal(status, "pending");
      assert.deepEqual(seen, [REFUSED, REFUSED], "to DNS it does not exist");
      assert.equal(waiting, 1);
      return [id, name];
    }
    goOn(c);
    await untilStatus(api, "c", "alive");
  }
  throw new Error("c was dead each time");
}

test("a new zone is pending, and unknown to DNS, as long as a node that counts as alive does not have it", async () => {
  const notified = createSocket("udp4").bind(0, "127.0.0.1");
  after(() => notified.close());
  await once(notified, "listening");
  const heard: { name: string; serials: Promise<(number | undefined)[]>; serial: number }[] = [];
  const expected = new Set<string>();
  notified.on("message", (message, from) => {
    const { questions, answer } = decodeMessage(message);
    const [question] = questions;
    const [soa] = answer;
    if (question === undefined || soa === undefined) return;
    const response = Buffer.from(message);
    response.writeUInt8((response[2] ?? 0) | 0x80, 2);
    notified.send(response, from.port, from.address);
    // Whom it sends elsewhere finds the serial there too.
    const serials = [a, b].map(async (node) => (await soaOf(node, question.name)).serial);
    heard.push({ name: question.name, serial: serialIn(soa.rdata), serials: Promise.all(serials) });
  });
  await using api = await signIn(a.api);
  const targets = { notify_targets: [`127.0.0.1:${notified.address().port}`], notify_debounce_seconds: 1 };
  assert.equal((await api.ask("PUT", "/config/axfr", { enabled: true, ...targets })).status, 200);
  const created = (name: string) => create(api, "/zones", { name: `${name}.` });
  const imported = async (name: string) => {
    const { status, body } = await api.ask("POST", "/zones/import", { zones: [{ name: `${name}.`, records: [www] }] });
    assert.equal(status, 200, JSON.stringify(body));
    return body.zones[0].zone_id;
  };
  for (const make of [created, imported]) {
    const [id, name] = await pendingWhile(api, make);
    expected.add(name);
    assert.ok(!heard.some((one) => one.name === `${name}.` || one.name === name), "secondaries hear of it later");
    // All that are alive have it, once the one that stands still is dead.
    await waitFor("it is active", 30_000, async () => (await api.ask("GET", `/zones/${id}`)).body.status === "active");
    await waitFor("both answer", 10_000, async () => {
      const soas = await Promise.all([a, b].map((node) => soaOf(node, name)));
      return soas.every(({ rcode }) => rcode === 0);
    });
    goOn(c);
    await untilStatus(api, "c", "alive");
    await waitFor("so does the third", 10_000, async () => (await soaOf(c, name)).rcode === 0);
    await waitFor("NOTIFY", 20_000, () => heard.some((one) => one.name.startsWith(name)));
  }
  for (const { name, serial, serials } of heard) {
    for (const one of await serials) assert.ok(one !== undefined && one >= serial, `${name}: ${one} and not ${serial}`);
  }
  await untilAgreed(b);
});

/** What of forwarding holds on while parts of the node are replaced, and what an operator sees of it. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { tableHandler } from "../support/scripted-replies.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { waitFor } from "../support/wait.ts";
import { startForwarding } from "./forward-world.ts";
import { create, figure, untilFigure } from "./notify-world.ts";
import { FAULTY_MAIN } from "./running-node.ts";

const SOA = "SOA ns.example. hostmaster.example. 1 7200 900 1209600 60";
const TABLE = `example. 60 ${SOA}\na.example. 600 A 192.0.2.1\nb.example. 600 A 192.0.2.2\nlate.example. 600 A 192.0.2.3`;

const directory = await mkdtemp(join(tmpdir(), "signpost-forward-settings-"));
after(() => rm(directory, { recursive: true }));

test("a control thread that dies takes neither forwarders nor cache with it, and its successor changes both", async () => {
  const fault = join(directory, "fault");
  await using partner = await startScriptedUpstream({ handler: tableHandler("x.partner.example. 600 A 198.51.100.1") });
  await using world = await startForwarding({ table: TABLE, main: FAULTY_MAIN, env: { FAULT_FILE: fault } });
  const { node } = world;
  const upstreams = [`127.0.0.1:${partner.port}`];
  const id = await create(world.api, "/forwarders", { domain: "partner.example.", upstreams });
  for (const name of ["a.example", "x.partner.example"]) assert.equal((await world.ask(`${name} A`)).rcode, "NOERROR");
  await writeFile(fault, "at once");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, () =>
    node.messages().some((message) => message.startsWith("thread control failed: Worker terminated")),
  );
  // Cached, and not cached, with nobody to tell of settings.
  for (const name of ["a", "b"]) assert.equal((await world.ask(`${name}.example A`)).rcode, "NOERROR");
  await waitFor("the replacement serves", 20_000, async () => {
    return (await node.get("/readyz").catch(() => undefined))?.status === 200;
  });
  for (const name of ["a.example", "b.example", "x.partner.example", "late.example"]) {
    assert.equal((await world.ask(`${name} A`)).rcode, "NOERROR", name);
  }
  assert.deepEqual(world.asked(), ["a.example. A", "b.example. A", "late.example. A"], "each was asked for once");
  assert.equal(partner.queries.length, 1);
  await waitFor("the API answers", 20_000, async () => {
    return (await world.api.ask("GET", "/cache").catch(() => undefined))?.status === 200;
  });
  assert.equal((await world.api.ask("GET", "/cache")).body.entries, 4);
  assert.equal((await world.api.ask("DELETE", `/forwarders/${id}`)).status, 200);
  assert.equal((await world.ask("x.partner.example A")).rcode, "NXDOMAIN", "of the default forwarder now");
});

test("an acknowledged change of a forwarder holds for the next query, however many follow each other", async () => {
  await using first = await startScriptedUpstream({ handler: tableHandler("www.partner.example. 600 A 198.51.100.1") });
  await using second = await startScriptedUpstream({
    handler: tableHandler("www.partner.example. 600 A 198.51.100.2"),
  });
  await using world = await startForwarding({ table: TABLE, isPatient: true });
  const places = [first, second].map(({ port }) => `127.0.0.1:${port}`);
  const id = await create(world.api, "/forwarders", { domain: "partner.example.", upstreams: places.slice(0, 1) });
  for (let round = 0; round < 20; round++) {
    const which = round % 2;
    await world.put(`/forwarders/${id}`, { upstreams: places.slice(which, which + 1) });
    const { data } = await world.ask("www.partner.example A");
    assert.deepEqual(data, [`www.partner.example. A 198.51.100.${which + 1}`], `round ${round}`);
  }
  await world.put(`/forwarders/${id}`, { domain: "moved.example." });
  assert.equal((await world.ask("www.partner.example A")).rcode, "NXDOMAIN");
});

test("metrics tell of upstreams, of the cache and of what is forwarded", async () => {
  await using world = await startForwarding({ table: TABLE, isPatient: true });
  await create(world.api, "/stub-zones", { domain: "stub.example.", hints: [`127.0.0.1:${world.upstream.port}`] });
  for (const name of ["a", "a", "b"]) await world.ask(`${name}.example A`);
  const of = `{upstream="127.0.0.1:${world.upstream.port}"}`;
  await untilFigure(world.node, `svc_forward_upstream_queries_total${of}`, 2);
  await untilFigure(world.node, `svc_forward_upstream_latency_seconds_count${of}`, 2);
  assert.equal(await figure(world.node, `svc_forward_upstream_answers_total${of}`), 2);
  assert.equal(await figure(world.node, 'svc_forward_routes{kind="default"}'), 1);
  assert.equal(await figure(world.node, 'svc_forward_routes{kind="stub"}'), 1);
  assert.equal(await figure(world.node, "svc_cache_entries"), 2);
  assert.equal(await figure(world.node, "svc_forward_waiting"), 0);
  const { body } = await world.api.ask("GET", "/cache");
  assert.deepEqual([body.entries, body.hits, body.misses], [2, 1, 2]);
  await untilFigure(world.node, "svc_cache_insertions_total", 2);
});

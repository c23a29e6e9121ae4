/** What the API has acknowledged is what DNS answers, from that moment on: nothing here waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../../../tests/support/api.ts";
import { ALONE } from "../../../tests/support/commands.ts";
import { openLab } from "../../../tests/support/zone-lab.ts";
import { openStorePublisher } from "../../publish/store-publisher.ts";
import { recordRoutes } from "./records.ts";
import { zoneRoutes } from "./zones.ts";

async function givenNode() {
  const api = await startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context)]);
  const lab = openLab([]);
  const publisher = openStorePublisher({ store: api.store, writer: lab.writer, log: () => undefined });
  await publisher.start();
  const ask = async (method: string, path: string, json?: unknown) => {
    const reply = await api.ask(method, path, json === undefined ? {} : { json });
    assert.equal(reply.status, 200, `${method} ${path}: ${reply.text}`);
    return reply.body;
  };
  /** The first line, and the answers. */
  const answer = (question: string) => {
    const [status, ...lines] = lab.ask(question);
    return [status, ...lines.filter((line) => line.startsWith("answer "))];
  };
  return {
    ask,
    answer,
    [Symbol.asyncDispose]: async () => {
      publisher[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

const A = (name: string, value: string) => ({ name, type: "A", ttl: 300, values: [{ value }] });

test("each write is answered as soon as it is acknowledged", async () => {
  await using node = await givenNode();
  const { ask, answer } = node;
  assert.deepEqual(answer("www.corp. A"), ["REFUSED ede=20"]);
  const zone = await ask("POST", "/zones", { name: "corp." });
  assert.deepEqual(answer("www.corp. A"), ["NXDOMAIN aa"]);
  const record = await ask("POST", `/zones/${zone.id}/records`, A("www", "192.0.2.1"));
  assert.deepEqual(answer("www.corp. A"), ["NOERROR aa", "answer www.corp. 300 IN A 192.0.2.1"]);
  await ask("PUT", `/records/${record.id}`, { values: [{ value: "192.0.2.2" }], ttl: 60 });
  assert.deepEqual(answer("www.corp. A"), ["NOERROR aa", "answer www.corp. 60 IN A 192.0.2.2"]);
  await ask("PUT", `/records/${record.id}`, { name: "web" });
  assert.deepEqual(answer("www.corp. A"), ["NXDOMAIN aa"]);
  assert.deepEqual(answer("web.corp. A"), ["NOERROR aa", "answer web.corp. 60 IN A 192.0.2.2"]);
  await ask("PUT", `/records/${record.id}`, { ttl: 0 });
  await ask("PUT", `/zones/${zone.id}`, { default_ttl: 77 });
  assert.deepEqual(answer("web.corp. A"), ["NOERROR aa", "answer web.corp. 77 IN A 192.0.2.2"]);
  await ask("PUT", `/zones/${zone.id}?dry_run=true`, { default_ttl: 88 });
  assert.deepEqual(answer("web.corp. A"), ["NOERROR aa", "answer web.corp. 77 IN A 192.0.2.2"]);
  await ask("POST", `/zones/${zone.id}/records/bulk-delete`, { ids: [record.id] });
  assert.deepEqual(answer("web.corp. A"), ["NXDOMAIN aa"]);
  await ask("DELETE", `/zones/${zone.id}`);
  assert.deepEqual(answer("web.corp. A"), ["REFUSED ede=20"]);
});

test("the SOA that DNS shows has the serial that the API shows", async () => {
  await using node = await givenNode();
  const { ask, answer } = node;
  const { id } = await ask("POST", "/zones", { name: "corp." });
  for (const value of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) {
    await ask("POST", `/zones/${id}/records`, A("www", value));
    const { serial } = (await ask("GET", `/zones/${id}`)).soa;
    assert.match(answer("corp. SOA").join(), new RegExp(` ns1\\.corp\\. hostmaster\\.corp\\. ${serial} `));
  }
});

test("a record that only keeps its name free of the wildcard answers NODATA", async () => {
  await using node = await givenNode();
  const { ask, answer } = node;
  const { id } = await ask("POST", "/zones", { name: "corp." });
  await ask("POST", `/zones/${id}/records`, A("*", "192.0.2.9"));
  assert.deepEqual(answer("www.corp. A"), ["NOERROR aa", "answer www.corp. 300 IN A 192.0.2.9"]);
  await ask("POST", `/zones/${id}/records`, { name: "www", type: "A", values: [], auto_populate: true });
  assert.deepEqual(answer("www.corp. A"), ["NOERROR aa"]);
});

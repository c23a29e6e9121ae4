/** Lists and audit logs of large objects: a page ends at so many bytes, and clients that do not read hold little. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { request } from "node:https";
import test from "node:test";
import { ANSWERS_BYTES_PER_ADDRESS_MAX, PAGE_BYTES_MAX, STREAM_BYTES_HELD } from "../../src/api/limits.ts";
import { auditRoutes } from "../../src/api/routes/audit.ts";
import { recordRoutes } from "../../src/api/routes/records.ts";
import { zoneRoutes } from "../../src/api/routes/zones.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { ALONE } from "../support/commands.ts";
import { waitFor } from "../support/wait.ts";

const RECORDS = 240;
/** What one connection may hold in memory ends it before STREAMS_MAX. */
const STREAMS_EACH = 16;
const HELD = ANSWERS_BYTES_PER_ADDRESS_MAX / STREAM_BYTES_HELD;

/** A zone of records of 45 KB, one letter of each outside Latin-1. Resolves with the path of their list. */
async function fatZone(api: TestApi): Promise<string> {
  const made = await api.ask("POST", "/zones", { json: { name: "fat.test." } });
  assert.equal(made.status, 200);
  for (let at = 0; at < RECORDS; at += 40) {
    await api.store.write((tx) => {
      for (let index = at; index < at + 40; index++) {
        tx.put("record", {
          id: `rec_${index}`,
          zone: "fat.test.",
          name: `h${index}`,
          type: "TXT",
          ttl: 60,
          values: Array.from({ length: 46 }, (_, value) => ({ value: "x".repeat(980) + value })),
          comment: "\u2603",
          protected: false,
          auto_populate: false,
        });
      }
    });
  }
  return `/zones/${made.body.id}/records`;
}

/** Every page from the first to the last; none is much longer than it may be. */
async function pagesOf(api: TestApi, path: string): Promise<readonly (readonly { id: string }[])[]> {
  const pages: { id: string }[][] = [];
  for (let cursor = ""; ; ) {
    const { status, text, body } = await api.ask("GET", `${path}?limit=5000${cursor}`);
    assert.equal(status, 200);
    assert.ok(Buffer.byteLength(text) < 1.1 * PAGE_BYTES_MAX, `${Buffer.byteLength(text)} bytes`);
    pages.push(body.items);
    if (body.next_cursor === null) return pages;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** The status that another address gets. */
function statusFrom(localAddress: string, url: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { authorization: "Bearer readonly" };
  const asked = request(url, { rejectUnauthorized: false, localAddress, headers }, (answer) => {
    resolve(answer.statusCode);
    answer.destroy();
  });
  asked.on("error", reject).end();
  return promise;
}

test("a page of large records ends at 4 MB, and the next one goes on; without a limit they all come", async () => {
  await using api = await startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context)]);
  const path = await fatZone(api);
  const pages = await pagesOf(api, path);
  assert.ok(pages.length > 2);
  const ids = pages.flat().map(({ id }) => id);
  assert.deepEqual([ids.length, new Set(ids).size], [RECORDS, RECORDS]);
  const whole = await api.ask("GET", path);
  assert.equal(whole.body.items.length, RECORDS);
  assert.equal(whole.body.next_cursor, null);
});

test("clients that read nothing hold lists up to a share of their address, and what they held comes free", async () => {
  await using api = await startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context)]);
  const path = await fatZone(api);
  const sessions: ClientHttp2Session[] = [];
  const answers: IncomingHttpHeaders[] = [];
  try {
    for (let at = 0; at < HELD + 8; at += STREAMS_EACH) {
      const session = connect(api.server.url, { rejectUnauthorized: false, settings: { initialWindowSize: 0 } });
      sessions.push(session);
      await once(session, "remoteSettings");
      for (let stream = at; stream < Math.min(HELD + 8, at + STREAMS_EACH); stream++) {
        const held = session.request({ ":path": `/api/v1${path}?limit=5000`, authorization: "Bearer readonly" });
        held.on("error", () => undefined);
        held.on("response", (headers) => answers.push(headers));
      }
    }
    await waitFor("all are answered", 20_000, () => answers.length === HELD + 8);
    const statuses = answers.map((headers) => headers[":status"]);
    assert.equal(statuses.filter((status) => Number(status) === 200).length, HELD);
    const refused = answers.filter((headers) => Number(headers[":status"]) === 503);
    assert.equal(refused.length, 8);
    assert.ok(refused.every((headers) => headers["retry-after"] === "1"));
    assert.equal(await statusFrom("127.0.0.2", `${api.url}/api/v1${path}`), 200);
    assert.equal((await api.ask("GET", path)).status, 503);
  } finally {
    for (const session of sessions) session.destroy();
  }
  await waitFor("the places are free", 10_000, () => api.server.requestsUnderWay() === 0);
  assert.equal((await api.ask("GET", `${path}?limit=1`)).status, 200);
});

test("the audit log of large entries comes in pages that end at 4 MB, and in short turns", async () => {
  await using api = await startApi(auditRoutes);
  for (let at = 0; at < 120; at += 20) {
    await api.store.write((tx) => {
      for (let index = at; index < at + 20; index++) {
        tx.audit({
          user_id: "usr_a",
          user_name: "alice",
          source_address: "192.0.2.1",
          request_id: `r${index}`,
          action: "update",
          resource: "record",
          resource_id: `rec_${index}`,
          resource_name: "www",
          result: "success",
          before: { text: "\u2603".repeat(20_000) },
          after: { text: "x".repeat(60_000) },
        });
      }
    });
  }
  const pages = await pagesOf(api, "/audit");
  assert.ok(pages.length > 1);
  assert.equal(new Set(pages.flat().map(({ id }) => id)).size, 120);
  assert.equal(pages.flat().length, 120);

  // One call is one turn of the event loop, whatever it looks for.
  assert.ok(api.store.auditPage({}, { limit: 5_000 }).entries.length <= 2);
  let turns = 0;
  for (let cursor: string | undefined; ; turns++) {
    const filter = { user_name: "nobody" };
    const page = api.store.auditPage(filter, { limit: 50, ...(cursor === undefined ? {} : { cursor }) });
    assert.deepEqual(page.entries, []);
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  assert.ok(turns >= 60, `${turns} turns`);
  const none = await api.ask("GET", "/audit?user_name=nobody");
  assert.deepEqual(none.body, { items: [], next_cursor: null });
  const lines = (await api.ask("GET", "/audit/export")).text.trimEnd().split("\n");
  assert.equal(lines.length, 120);
});

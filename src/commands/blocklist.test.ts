import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, listOf, objectsOf, putList, TOOLS } from "../../tests/support/blocklist.ts";
import { auditOf, refusedWith, testCaller } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { BLOCKLIST_KEY, listHash } from "../model/blocklist.ts";
import { BLOCKLIST_PARTS_KEPT_MS, BLOCKLIST_SORTED_MAX } from "../model/limits.ts";
import { type BlocklistReading, putBlocklist, viewBlocklist } from "./blocklist.ts";
import { openBlocklistKeeper } from "./blocklist-keeper.ts";

const MANY = Array.from({ length: BLOCKLIST_SORTED_MAX + 1 }, (_, index) => `host-${index}.example.`);

test("a list is replaced as a whole and shown in the order of names; an empty one clears it", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  assert.deepEqual([viewBlocklist(store).count, await listOf(store)], [0, []]);
  const first = await putList(context, ["b.example", "A.example.", "a.example", "x.b.example"]);
  assert.equal(first.count, 3);
  assert.deepEqual(await listOf(store), ["a.example.", "b.example.", "x.b.example."]);
  assert.equal(viewBlocklist(store).etag, first.etag);
  await putList(context, ["c.example"]);
  assert.deepEqual(await listOf(store), ["c.example."]);
  await putList(context, []);
  assert.deepEqual([viewBlocklist(store).count, await listOf(store)], [0, []]);
});

test("a large list is shown whole", async () => {
  await using world = await temporaryStore();
  await putList(world.context, MANY);
  assert.deepEqual((await listOf(world.store)).toSorted(), MANY.toSorted());
});

test("what is shown is the list as it was when it was asked for", async () => {
  await using world = await temporaryStore();
  await putList(world.context, ["a.example"]);
  const view = viewBlocklist(world.store);
  await putList(world.context, ["b.example"]);
  for await (const names of view.names()) assert.deepEqual(names, ["a.example."]);
});

test("only parts that are not there are written, and the same list is no other version", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const { etag } = await putList(context, MANY);
  let written: string[] = [];
  store.onChange(({ changes }) => {
    written.push(...changes.map(({ kind }) => kind));
  });
  assert.equal((await putList(context, MANY.toReversed())).etag, etag);
  assert.deepEqual(written, []);
  await putList(context, [...MANY, "more.example"]);
  assert.deepEqual(written, ["blocklist-part", "blocklist"]);
  written = [];
  await putList(context, MANY);
  assert.deepEqual(written, ["blocklist"]);
});

test("a dry run, another version, a confined token and a list with faults leave everything as it is", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  await refusedWith("precondition_failed", putList(context, ["a.example"], { ifMatch: '"x"' }));
  const { etag } = await putList(context, ["a.example"]);
  const stamp = store.get("blocklist", BLOCKLIST_KEY)?.stamp;
  const unchanged = () => {
    assert.equal(store.get("blocklist", BLOCKLIST_KEY)?.stamp, stamp);
    assert.equal(store.count("blocklist-part"), 1);
  };
  assert.deepEqual(await putList(context, ["b.example", "c.example"], { dryRun: true }), { count: 2 });
  unchanged();
  await refusedWith("precondition_failed", putList(context, ["b.example"], { ifMatch: '"x"' }));
  unchanged();
  await refusedWith("invalid_request", putList(context, ["*.c.example"], { ifMatch: '"x"' }));
  unchanged();
  await refusedWith("zone_not_permitted", putList(context, ["b.example"], { zoneIds: ["zon_x"] }));
  unchanged();
  await refusedWith("invalid_request", putList(context, ["b.example", "*.c.example"]));
  unchanged();
  await putList(context, ["b.example"], { ifMatch: etag ?? "" });
  assert.deepEqual(await listOf(store), ["b.example."]);
});

test("the audit log says which list it was, not what was on it", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  await putList(context, ["secret.example"]);
  await putList(context, ["secret.example"]);
  const [second, first] = auditOf(store, { resource: "blocklist" });
  const sha256 = listHash(objectsOf(["secret.example"]).list);
  assert.deepEqual(first?.after, { count: 1, sha256 });
  assert.deepEqual([first?.action, first?.result, second?.result], ["update", "success", "unchanged"]);
  assert.ok(!JSON.stringify(auditOf(store, {})).includes("secret"));
});

test("a part that is removed while the list is written is written again", async () => {
  await using world = await temporaryStore();
  const { context, store } = world;
  const domains = ["a.example", "b.example"];
  let removals = 0;
  const read = async (body: Uint8Array): Promise<BlocklistReading> => {
    const reading = await TOOLS.read(body);
    return {
      ...reading,
      parts: async (keys) => {
        // The part of the first name lies there: it goes while the others are fetched.
        if (removals++ === 0) {
          const key = objectsOf(["a.example"]).parts.map(({ hash }) => hash);
          await store.write((tx) => void tx.delete("blocklist-part", key));
        }
        return reading.parts(keys);
      },
    };
  };
  await putList(context, ["a.example"]);
  await putList(context, []);
  const signal = new AbortController().signal;
  await putBlocklist(context, testCaller(), { ...TOOLS, read }, bodyOf(domains), signal);
  assert.ok(removals > 1);
  assert.deepEqual(await listOf(store), ["a.example.", "b.example."]);
});

test("a damaged part from elsewhere is written anew by whoever puts the list", async () => {
  await using world = await temporaryStore();
  const [part] = objectsOf(["a.example"]).parts;
  assert.ok(part !== undefined);
  await world.store.write((tx) => void tx.put("blocklist-part", { ...part, names: "AAAA" }));
  await putList(world.context, ["a.example"]);
  assert.deepEqual(await listOf(world.store), ["a.example."]);
});

test("a list of which a part has not come yet is not shown in part", async () => {
  await using world = await temporaryStore();
  const { list } = objectsOf(["a.example"]);
  await world.store.write((tx) => void tx.put("blocklist", list));
  await refusedWith("not_ready", listOf(world.store));
});

test("parts that no list names go an hour after the list last changed, and parts that are named stay", async () => {
  let nowMs = 1_800_000_000_000;
  await using world = await temporaryStore({ now: () => nowMs });
  const { context, store } = world;
  await using keeper = openBlocklistKeeper({ store, log: context.log, now: () => nowMs });
  await putList(context, MANY);
  await putList(context, ["kept.example"]);
  const all = store.count("blocklist-part");
  nowMs += BLOCKLIST_PARTS_KEPT_MS - 1;
  await keeper.tidy();
  assert.equal(store.count("blocklist-part"), all);
  nowMs += 2;
  // A part that comes late waits for its index.
  const [late] = objectsOf(["late.example"]).parts;
  assert.ok(late !== undefined);
  await store.write((tx) => void tx.put("blocklist-part", late));
  await keeper.tidy();
  assert.equal(store.count("blocklist-part"), 2);
  assert.deepEqual(await listOf(store), ["kept.example."]);
  nowMs += BLOCKLIST_PARTS_KEPT_MS + 1;
  await keeper.tidy();
  assert.equal(store.count("blocklist-part"), 1);
});

test("a part that another node removes is put back where the list names it, and where its index may still come", async () => {
  let nowMs = 1_800_000_000_000;
  await using world = await temporaryStore({ now: () => nowMs });
  const { context, store } = world;
  await putList(context, ["a.example"]);
  const [early] = objectsOf(["early.example"]).parts;
  assert.ok(early !== undefined);
  await store.write((tx) => void tx.put("blocklist-part", early));
  const removeAll = async () => {
    const keeper = openBlocklistKeeper({ store, log: context.log, now: () => nowMs });
    const keys = store.list("blocklist-part", { limit: 9 }).map(({ key }) => key);
    await store.write((tx) => {
      for (const key of keys) tx.delete("blocklist-part", key);
    });
    await keeper[Symbol.asyncDispose]();
    return store.count("blocklist-part");
  };
  assert.equal(await removeAll(), 2);
  nowMs += BLOCKLIST_PARTS_KEPT_MS + 1;
  assert.equal(await removeAll(), 1);
  assert.deepEqual(await listOf(store), ["a.example."]);
});

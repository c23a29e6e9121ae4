import assert from "node:assert/strict";
import { test } from "node:test";
import { auditArena } from "../../tests/image/audit.ts";
import { listOf, objectsOf, putList } from "../../tests/support/blocklist.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { nameFromText } from "../dns/name.ts";
import {
  beginBlocklist,
  blocklistCount,
  findBlocked,
  BLOCKLIST_SHARD_BYTES_MAX as SHARD_BYTES_MAX,
  BLOCKLIST_SHARDS as SHARDS,
} from "../image/blocklist.ts";
import { createNameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL, createSharedImage } from "../image/shared.ts";
import { openView } from "../image/view.ts";
import { collect, openImageWriter } from "../image/writer.ts";
import { BLOCKLIST_SHARDS } from "../model/blocklist.ts";
import { BLOCKLIST_SHARD_BYTES_MAX } from "../model/limits.ts";
import { openBlocklistPublisher } from "./store-blocklist.ts";

type Options = Parameters<typeof temporaryStore>[0];

/** A store whose blocklist is published, and what the image says of names. */
async function openLab(options?: Options) {
  const temporary = await temporaryStore(options);
  const { store, context } = temporary;
  const shared = createSharedImage(0xbeef);
  const writer = openImageWriter(shared);
  const view = openView(shared);
  const faults: string[] = [];
  const open = (on = writer) => {
    const publisher = openBlocklistPublisher({
      store,
      writer: on,
      log: (level, message) => {
        if (level === "error") faults.push(message);
      },
      onChanged: () => {
        while (collect(on));
      },
    });
    const end = store.onChange(publisher.hear);
    return { ...publisher, end };
  };
  const publisher = open();
  await publisher.start();
  const key = createNameKey();
  return {
    store,
    context,
    writer,
    view,
    publisher,
    open,
    faults,
    isBlocked: (name: string): boolean => {
      const wire = nameFromText(name);
      assert.ok(wire.kind === "name");
      readNameKey(key, wire.name, 0, wire.name.length, view.control[CONTROL.HASH_SEED]!);
      return findBlocked(view, key) >= 0;
    },
    put: async (domains: readonly string[]) => {
      await putList(context, domains);
      await publisher.settled();
    },
    [Symbol.asyncDispose]: async () => {
      publisher[Symbol.dispose]();
      auditArena(writer);
      await temporary[Symbol.asyncDispose]();
    },
  };
}

const MANY = Array.from({ length: 20_000 }, (_, index) => `host-${index}.example.`);

test("store and image cut lists into the same shards", () => {
  assert.equal(BLOCKLIST_SHARDS, SHARDS);
  assert.ok(BLOCKLIST_SHARD_BYTES_MAX <= SHARD_BYTES_MAX);
});

test("a list blocks when it is settled, each change tells that names are routed anew, and an empty one costs nothing", async () => {
  await using lab = await openLab();
  const routing = () => lab.view.control[CONTROL.ROUTING]!;
  let before = routing();
  await lab.put(["ads.example", "b.test"]);
  assert.deepEqual(["ads.example.", "x.y.ads.example.", "example.", "b.test.", "c.test."].map(lab.isBlocked), [
    true,
    true,
    false,
    true,
    false,
  ]);
  assert.equal(blocklistCount(lab.view), 2);
  assert.notEqual(routing(), before);
  before = routing();
  await lab.put(["b.test"]);
  assert.notEqual(routing(), before);
  assert.deepEqual(["ads.example.", "b.test."].map(lab.isBlocked), [false, true]);
  await lab.put([]);
  assert.equal(lab.view.control[CONTROL.BLOCKLIST], 0);
  assert.deepEqual(lab.faults, []);
});

test("a name more leaves all shards but one where they lie", async () => {
  await using lab = await openLab();
  await lab.put(MANY);
  const before = beginBlocklist(lab.writer).references;
  await lab.put([...MANY, "more.example"]);
  const after = beginBlocklist(lab.writer).references;
  assert.equal(before.filter((block, shard) => block !== after[shard]).length, 1);
  for (const name of [...MANY, "more.example."]) assert.ok(lab.isBlocked(name), name);
});

test("a list takes effect as a whole, in whatever order its parts and its index come", async () => {
  await using lab = await openLab();
  await lab.put(["former.example"]);
  const domains = ["a.example", "b.example", "c.example", "d.example"];
  const { list, parts } = objectsOf(domains);
  const [first, ...others] = parts;
  assert.ok(first !== undefined && others.length === 3);
  await lab.store.write((tx) => void tx.put("blocklist-part", first));
  await lab.store.write((tx) => void tx.put("blocklist", list));
  for (const part of others) {
    await lab.publisher.settled();
    assert.deepEqual([lab.publisher.isWaiting(), lab.publisher.isFailed()], [false, false]);
    assert.ok(lab.isBlocked("former.example."));
    assert.ok(!domains.some((name) => lab.isBlocked(`${name}.`)), "nothing of a list in part");
    await lab.store.write((tx) => void tx.put("blocklist-part", part));
  }
  await lab.publisher.settled();
  assert.ok(!lab.isBlocked("former.example."));
  assert.ok(domains.every((name) => lab.isBlocked(`${name}.`)));
});

test("another list that comes while one is built or waits for parts is the one that takes effect", async () => {
  await using lab = await openLab();
  await lab.store.write((tx) => void tx.put("blocklist", objectsOf(["never.example"]).list));
  await lab.publisher.settled();
  await putList(lab.context, MANY);
  assert.ok(lab.publisher.isWaiting());
  await putList(lab.context, ["last.example"]);
  await lab.publisher.settled();
  assert.deepEqual(["last.example.", "host-1.example.", "never.example."].map(lab.isBlocked), [true, false, false]);
  assert.equal(blocklistCount(lab.view), 1);
});

test("a successor takes over what is in the image, without reading it again, and brings it to the store", async () => {
  await using lab = await openLab();
  await lab.put(MANY);
  lab.publisher.end();
  lab.publisher[Symbol.dispose]();
  const before = beginBlocklist(lab.writer).references;
  const writer = openImageWriter(lab.view.shared);
  const second = lab.open(writer);
  await second.start();
  assert.deepEqual(beginBlocklist(writer).references, before);
  second.end();
  second[Symbol.dispose]();
  await putList(lab.context, ["other.example"]);
  const third = lab.open(openImageWriter(lab.view.shared));
  await third.start();
  assert.deepEqual(["host-7.example.", "other.example."].map(lab.isBlocked), [false, true]);
  third[Symbol.dispose]();
  // The lab's own writer knows nothing of what its successors did.
  Object.assign(lab.writer, openImageWriter(lab.view.shared));
});

test("a damaged part or index from elsewhere leaves the former list in force, and the next list is published", async () => {
  await using lab = await openLab();
  await lab.put(["former.example"]);
  const { list, parts } = objectsOf(["a.example"]);
  const [part] = parts;
  const [wrong] = objectsOf(["b.example"]).parts;
  assert.ok(part !== undefined && wrong !== undefined);
  await lab.store.write((tx) => {
    tx.put("blocklist-part", { ...part, names: wrong.names });
    tx.put("blocklist", list);
  });
  await lab.publisher.settled();
  assert.ok(lab.publisher.isFailed());
  assert.deepEqual(["former.example.", "a.example.", "b.example."].map(lab.isBlocked), [true, false, false]);
  await lab.store.write((tx) => void tx.put("blocklist", { ...list, shards: ["nonsense"] }));
  await lab.publisher.settled();
  assert.ok(lab.publisher.isFailed());
  assert.ok(lab.isBlocked("former.example."));
  assert.equal(lab.faults.length, 2);
  await lab.put(["next.example"]);
  assert.deepEqual(["former.example.", "next.example."].map(lab.isBlocked), [false, true]);
  assert.deepEqual(await listOf(lab.store), ["next.example."]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import type { SessionBody } from "../model/objects.ts";
import { newId } from "./run.ts";
import { createStoreIndex } from "./store-index.ts";

const session = (user_id: string): SessionBody => ({
  id: newId("session"),
  user_id,
  generation: 1,
  rotated_at: 1,
  revoked: false,
});

test("an index knows what was there, follows what changes, and ends", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const [old, kept] = [session("one"), session("one")];
  await store.write((tx) => [old, kept].map((body) => tx.put("session", body)));
  const index = createStoreIndex(store, "session", ({ user_id }) => (user_id === "nobody" ? undefined : user_id));
  assert.deepEqual([...index.idsOf("one")].sort(), [old.id, kept.id].sort());
  const added = session("two");
  await store.write((tx) => {
    tx.delete("session", [old.id]);
    tx.put("session", added);
    tx.put("session", session("nobody"));
    tx.put("session", { ...kept, revoked: true });
  });
  assert.deepEqual([index.idsOf("one"), index.idsOf("two"), index.idsOf("nobody")], [[kept.id], [added.id], []]);
  await store.write((tx) => tx.put("session", { ...added, user_id: "one" }));
  assert.deepEqual([[...index.idsOf("one")].sort(), index.idsOf("two")], [[kept.id, added.id].sort(), []]);
  await assert.rejects(
    store.write((tx) => {
      tx.delete("session", [kept.id]);
      throw new Error("half-way");
    }),
  );
  assert.equal(index.idsOf("one").length, 2);
  index.close();
  await store.write((tx) => tx.delete("session", [kept.id]));
  assert.equal(index.idsOf("one").length, 2);
});

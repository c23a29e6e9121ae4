import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeKeys } from "./keys.ts";

const FILE_KEY = new Uint8Array(32).fill(1);
const OTHER_FILE_KEY = new Uint8Array(32).fill(2);
const CLUSTER_KEY = "a key that all nodes of a cluster have";

test("nodes with one cluster key derive the same keys, whatever their own key files hold", () => {
  const [one, other] = [nodeKeys(FILE_KEY, CLUSTER_KEY), nodeKeys(OTHER_FILE_KEY, CLUSTER_KEY)];
  assert.deepEqual(one.store, other.store);
  assert.equal(one.store.kind, "cluster");
  assert.deepEqual([one.signing, one.cookies], [other.signing, other.cookies]);
  assert.deepEqual(one.formerStore, FILE_KEY, "what sealed the store before");
  assert.notDeepEqual(nodeKeys(FILE_KEY, `${CLUSTER_KEY} `).store.key, one.store.key);
});

test("without a cluster key each node has its own, and every purpose a key of its own", () => {
  const keys = nodeKeys(FILE_KEY, undefined);
  assert.deepEqual([keys.store, keys.formerStore], [{ kind: "file", key: FILE_KEY }, undefined]);
  const other = nodeKeys(OTHER_FILE_KEY, undefined);
  for (const purpose of ["signing", "cookies"] as const) assert.notDeepEqual(keys[purpose], other[purpose]);
  const all = [keys.store.key, keys.signing, keys.cookies].map((key) => Buffer.from(key).toString("hex"));
  assert.equal(new Set(all).size, 3);
  assert.ok(all.every((hex) => hex.length === 64));
});

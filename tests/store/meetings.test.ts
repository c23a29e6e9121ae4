/** What two nodes made of one thing without a sight of each other, where no record is meant: which holds, on both alike. */
import assert from "node:assert/strict";
import test from "node:test";
import { EMPTY_BLOCKLIST } from "../../src/model/blocklist.ts";
import { exchange, pair } from "./two-stores.ts";

test("of two users of one name the later stays, whose sessions are not those of the other, and the other is in the journal", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  const user = (id: string) => ({
    ...({ id, username: "alice", role: "editor", enabled: true, password_hash: `hash of ${id}` } as const),
    session_epoch: `epoch of ${id}`,
  });
  await left.store.write((tx) => tx.put("user", user("usr_left")));
  await right.store.write((tx) => tx.put("user", user("usr_right")));
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    assert.deepEqual(store.get("user", ["alice"])?.body, user("usr_right"));
    // The id of the other leads here; the epoch ends what began under the other password.
    assert.equal(store.byId("user", "usr_left")?.body.session_epoch, "epoch of usr_right");
    assert.equal(store.count("user"), 1);
    const { entries } = store.journalPage({ limit: 10 });
    assert.deepEqual(
      entries.map(({ kind, objectId, reason }) => [kind, objectId, reason]),
      [["user", "usr_left", "replaced"]],
    );
    assert.ok(!JSON.stringify(entries).includes("hash of"));
  }
});

test("of two blocklists the later blocks, whole, and all parts of it are there", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  const part = (letter: string) => ({ hash: letter.repeat(22), names: letter });
  const list = (...letters: string[]) => ({
    ...EMPTY_BLOCKLIST,
    count: letters.length,
    shards: [letters.map((letter) => letter.repeat(22)).join(""), ...EMPTY_BLOCKLIST.shards.slice(1)],
  });
  const put = (store: typeof left.store, ...letters: string[]) =>
    store.write((tx) => {
      for (const letter of letters) tx.put("blocklist-part", part(letter));
      tx.put("blocklist", list(...letters));
    });
  await put(left.store, "a", "b");
  await put(right.store, "b", "c");
  await exchange(left.store, right.store);
  for (const { store } of [left, right]) {
    assert.deepEqual(
      store.list("blocklist", { limit: 10 }).map(({ body }) => body),
      [list("b", "c")],
    );
    for (const letter of ["b", "c"]) assert.ok(store.get("blocklist-part", [letter.repeat(22)]));
    const { entries } = store.journalPage({ limit: 10 });
    assert.deepEqual(
      entries.map(({ kind, body }) => [kind, body]),
      [["blocklist", list("a", "b")]],
    );
  }
});

test("a forwarder and a stub zone of one domain, and overrides that exclude each other, stay both with one order on both nodes", async () => {
  const { first, second } = pair();
  await using left = await first;
  await using right = await second;
  const answer = { ttl: 60, enabled: true };
  await left.store.write((tx) => {
    tx.put("forwarder", { id: "fwd_1", domain: "far.", upstreams: ["192.0.2.1"] });
    tx.put("override", { ...answer, id: "ovr_1", name: "www.far.", type: "A", values: [{ value: "192.0.2.1" }] });
  });
  await right.store.write((tx) => {
    tx.put("stub-zone", { id: "stb_1", domain: "far.", hints: ["192.0.2.2"] });
    tx.put("override", { ...answer, id: "ovr_2", name: "www.far.", type: "CNAME", values: [{ value: "x.far." }] });
  });
  await exchange(left.store, right.store);
  // The later answers: src/publish has the rules, and these stamps are all that they look at.
  const stamps = [left, right].map(({ store }) => [
    store.get("forwarder", ["far."])?.stamp,
    store.get("stub-zone", ["far."])?.stamp,
    ...store.list("override", { limit: 10 }).map(({ stamp }) => stamp),
  ]);
  assert.deepEqual(stamps[0], stamps[1]);
  assert.ok(stamps[0]?.every((stamp) => stamp !== undefined) && stamps[0].length === 4);
  for (const { store } of [left, right]) assert.deepEqual(store.journalPage({ limit: 10 }).entries, []);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "../cluster/member.ts";
import { addressOf, decodeMeta, encodeMeta, joinsOthers, otherAddress, otherInstance } from "./cluster-members.ts";

const META = encodeMeta({ instance: "first", region: "", version: "1", address: "" });
const member = (state: Member["state"], meta = META): Member => ({
  ...{
    name: "b",
    endpoint: { address: Uint8Array.of(192, 0, 2, 2), port: 7946 },
    meta,
    state,
    incarnation: 1,
    sinceMs: 0,
  },
});

test("an id that is alive with another store or elsewhere is refused, and one that is gone is not", () => {
  const elsewhere = { nodeId: "b", address: "192.0.2.9:7946" };
  for (const state of ["alive", "suspect"] as const) {
    assert.match(otherInstance([member(state)], "b", "second") ?? "", /alive with another store/);
    assert.match(otherAddress([member(state)], elsewhere) ?? "", /alive at 192\.0\.2\.2:7946/);
  }
  for (const state of ["dead", "left"] as const) {
    assert.equal(otherInstance([member(state)], "b", "second"), undefined);
    assert.equal(otherAddress([member(state)], elsewhere), undefined);
  }
  assert.equal(otherInstance([member("alive")], "b", "first"), undefined);
  assert.equal(otherInstance([member("alive", new Uint8Array())], "b", "second"), undefined);
  assert.equal(otherAddress([member("alive")], { nodeId: "b", address: "192.0.2.2:7946" }), undefined);
  assert.equal(otherAddress([member("alive")], { nodeId: "b" }), undefined);
  assert.equal(otherAddress([member("alive")], { nodeId: "c", address: "192.0.2.9:7946" }), undefined);
});

test("a list of others that names only this node names nobody", () => {
  const own = ["", "192.0.2.1:7946"];
  assert.equal(joinsOthers([], own), false);
  assert.equal(joinsOthers(["192.0.2.1:7946"], own), false);
  assert.equal(joinsOthers(["192.0.2.1:7946", "192.0.2.2:7946"], own), true);
});

test("where a member is dialled is what it says while it is there, and what it wrote once it is gone", () => {
  const moved = "192.0.2.1:7946";
  for (const state of ["alive", "suspect"] as const) assert.equal(addressOf(member(state), moved), "192.0.2.2:7946");
  for (const state of ["dead", "left"] as const) {
    assert.equal(addressOf(member(state), moved), moved);
    assert.equal(addressOf(member(state), undefined), "192.0.2.2:7946");
  }
  const named = encodeMeta({ instance: "first", region: "eu", version: "1", address: "b.corp.test:7946" });
  assert.equal(addressOf(member("alive", named), moved), "b.corp.test:7946");
});

test("a name that an older version could not read past is left out of what a member says of itself", () => {
  const texts = { instance: "i".repeat(20), region: "r".repeat(64), version: "1.2.3" };
  const short = { ...texts, address: `${"a".repeat(100)}.test:7946` };
  assert.deepEqual(decodeMeta(encodeMeta(short)), short);
  const long = { ...texts, address: `${"a".repeat(200)}.test:7946` };
  assert.deepEqual(decodeMeta(encodeMeta(long)), { ...texts, address: "" });
});

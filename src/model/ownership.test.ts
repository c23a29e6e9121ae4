import assert from "node:assert/strict";
import { test } from "node:test";
import { RECORD_TYPES } from "./objects.ts";
import { ownershipConflict, ownsName } from "./ownership.ts";

test("two types conflict where one of them owns the name", () => {
  for (const type of RECORD_TYPES) {
    for (const other of RECORD_TYPES) {
      const expected = type !== other && (ownsName(type) || ownsName(other)) ? other : undefined;
      assert.equal(ownershipConflict(type, [other], "www"), expected, `${type} beside ${other}`);
    }
  }
});

test("CNAME and ALIAS own their name, against each other too", () => {
  assert.deepEqual(RECORD_TYPES.filter(ownsName), ["CNAME", "ALIAS"]);
  assert.equal(ownershipConflict("CNAME", ["ALIAS"], "www"), "ALIAS");
  assert.equal(ownershipConflict("A", ["MX", "TXT", "CNAME"], "www"), "CNAME");
  assert.equal(ownershipConflict("A", ["AAAA", "MX"], "www"), undefined);
  assert.equal(ownershipConflict("CNAME", [], "www"), undefined);
});

test("at the apex NS stands beside an ALIAS, and nothing else does", () => {
  assert.equal(ownershipConflict("ALIAS", ["NS"], "@"), undefined);
  assert.equal(ownershipConflict("NS", ["ALIAS"], "@"), undefined);
  assert.equal(ownershipConflict("ALIAS", ["NS", "MX"], "@"), "MX");
  assert.equal(ownershipConflict("NS", ["CNAME"], "@"), "CNAME");
});

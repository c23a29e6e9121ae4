import assert from "node:assert/strict";
import test from "node:test";
import { ownerFault, readableFault, writableFault } from "./private-path.ts";

const ME = 1000;

test("a path is its user's or root's, for root too", () => {
  for (const fault of [ownerFault, writableFault, readableFault]) {
    assert.equal(fault("/data", { uid: ME, mode: 0o100600 }, ME), undefined);
    assert.equal(fault("/data", { uid: 0, mode: 0o100600 }, ME), undefined);
    assert.match(
      fault("/data", { uid: 1001, mode: 0o100600 }, ME) ?? "",
      /^\/data belongs to user 1001, .* user 1000;/,
    );
    assert.match(fault("/data", { uid: ME, mode: 0o100600 }, 0) ?? "", /^\/data belongs to user 1000, .* user 0;/);
  }
});

test("others must not write, and of what is secret must not read", () => {
  for (const mode of [0o40702, 0o40720, 0o41777]) {
    assert.match(writableFault("/data", { uid: ME, mode }, ME) ?? "", /chmod go-w \/data$/);
  }
  assert.equal(writableFault("/data", { uid: ME, mode: 0o40755 }, ME), undefined);
  for (const mode of [0o100604, 0o100640, 0o100602, 0o100620, 0o100610]) {
    assert.match(readableFault("/data/key", { uid: ME, mode }, ME) ?? "", /chmod 600 \/data\/key$/);
  }
  assert.equal(readableFault("/data/key", { uid: ME, mode: 0o100400 }, ME), undefined);
});

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { LONGEST, longestFirst } from "./order.ts";

test("the longest come first, the others in their order", () => {
  const [first = "", second = ""] = LONGEST;
  const files = ["b.test.ts", second, "a.test.ts", first, "c.test.ts"];
  assert.deepEqual(longestFirst(files), [first, second, "b.test.ts", "a.test.ts", "c.test.ts"]);
});

test("each of the longest is there, once", () => {
  for (const file of LONGEST) assert.ok(existsSync(new URL(`../../${file}`, import.meta.url)), file);
  assert.equal(new Set(LONGEST).size, LONGEST.length);
});

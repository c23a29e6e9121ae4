import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { prepareCell } from "./cell.ts";

const HERE = fileURLToPath(import.meta.url);
const CELL = { userId: 60_953, groupId: 60_953, directory: undefined, hidden: [] };

test("a runner that is neither root nor the scripts' user runs nothing, and says why", () => {
  const prepared = prepareCell(CELL, 1_000);
  assert.equal(prepared.kind, "refused");
  assert.match(
    prepared.kind === "refused" ? prepared.why : "",
    /the runner is user 1000: it must be root, or user 60953/,
  );
});

test("scripts do not run as the user whose files the service's are", () => {
  const { uid } = statSync(HERE);
  const prepared = prepareCell({ ...CELL, userId: uid, hidden: [HERE] }, uid);
  assert.match(prepared.kind === "refused" ? prepared.why : "", /belongs to user/);
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { nodeIdOf } from "./node-id.ts";

const directory = mkdtempSync(join(tmpdir(), "signpost-id-"));
after(() => rmSync(directory, { recursive: true }));

test("a node without a configured id makes one and keeps it; a configured one goes before it", () => {
  const made = nodeIdOf(directory, undefined);
  assert.match(made, /^node-[0-9a-f]{12}$/);
  assert.equal(nodeIdOf(directory, undefined), made);
  assert.equal(nodeIdOf(directory, "given"), "given");
  assert.equal(nodeIdOf(directory, undefined), made);
  assert.equal(statSync(join(directory, "node-id")).mode & 0o777, 0o600);
});

test("a file that holds no id is refused and left as it is", () => {
  writeFileSync(join(directory, "node-id"), "x\n");
  assert.throws(
    () => nodeIdOf(directory, undefined),
    (error) =>
      error instanceof OperatorError && /^cannot read the node id .*: it holds no node id$/.test(error.message),
  );
  assert.equal(statSync(join(directory, "node-id")).size, 2);
});

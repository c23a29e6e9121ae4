import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { delimiter } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a step of `npm run check`; a failure shows all that the step said. */
function check(command: string, args: readonly string[]): void {
  const env = { ...process.env, PATH: `${root}node_modules/.bin${delimiter}${process.env.PATH ?? ""}` };
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, env, encoding: "utf8" });
  assert.equal(status, 0, `${error?.message ?? ""}${stdout}${stderr}`);
}

test("types", () => check("tsc", ["--noEmit"]));
test("format and lint", () => check("biome", ["check", "--error-on-warnings", "."]));
test("house rules", () => check(process.execPath, ["tools/tidy.ts"]));

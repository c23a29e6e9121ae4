import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import type { Remembered } from "../health/state-text.ts";
import { openHealthStateWriter, readHealthState } from "./health-state-file.ts";

const directory = mkdtempSync(join(tmpdir(), "signpost-health-state-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const NOW_MS = 1_800_000_000_000;
const STATE: Remembered = {
  state: "unhealthy",
  sinceMs: NOW_MS - 9_000,
  checkedMs: NOW_MS - 1_000,
  seenMs: NOW_MS,
  failures: 4,
  successes: 0,
  latencyUs: 250,
};

function source(states: Iterable<readonly [string, Remembered]>) {
  const counts = { done: 0, changes: 0 };
  return { counts, source: { states: () => states, done: () => counts.done, changes: () => counts.changes } };
}

function read(path: string) {
  const lines: string[] = [];
  const states = readHealthState(path, NOW_MS, (_, message) => lines.push(message));
  return { states, lines };
}

test("what is written at the end is there at the next start, for nobody else to read", () => {
  const path = join(directory, "end");
  const { counts, source: states } = source([["probe", STATE]]);
  const writer = openHealthStateWriter(path, states, () => assert.fail("it can be written"));
  counts.changes = 1;
  writer.close();
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(read(path), { states: new Map([["probe", STATE]]), lines: [] });
});

test("a changed state is written within seconds", async () => {
  const path = join(directory, "change");
  const { counts, source: states } = source([["probe", STATE]]);
  const writer = openHealthStateWriter(path, states, () => assert.fail("it can be written"));
  counts.changes = 1;
  await waitFor("the file", 10_000, () => statSync(path, { throwIfNoEntry: false })?.size);
  assert.equal(read(path).states.size, 1);
  writer.close();
});

test("nothing new, nothing written", () => {
  const path = join(directory, "nothing");
  openHealthStateWriter(path, source([]).source, () => {}).close();
  assert.equal(statSync(path, { throwIfNoEntry: false }), undefined);
});

test("no file is no fault, and a week-old state is left out", () => {
  assert.deepEqual(read(join(directory, "none")), { states: new Map(), lines: [] });
  const path = join(directory, "old");
  const { counts, source: states } = source([
    ["old", { ...STATE, seenMs: NOW_MS - 8 * 86_400_000 }],
    ["new", STATE],
  ]);
  const writer = openHealthStateWriter(path, states, () => {});
  counts.done = 1;
  writer.close();
  assert.deepEqual([...read(path).states.keys()], ["new"]);
});

for (const [what, make] of [
  ["a damaged file", (path: string) => writeFileSync(path, "signpost-health-state 1 abc\nprobe h", { mode: 0o600 })],
  ["an empty file", (path: string) => writeFileSync(path, "", { mode: 0o600 })],
  ["a file that others may read", (path: string) => writeFileSync(path, "", { mode: 0o600 }) ?? chmodSync(path, 0o644)],
  ["a directory", (path: string) => void mkdirSync(path)],
  ["a device", (path: string) => symlinkSync("/dev/zero", path)],
] as const) {
  test(`${what} is ignored with a line in the log`, () => {
    const path = join(directory, what.replaceAll(" ", "-"));
    make(path);
    const { states, lines } = read(path);
    assert.equal(states.size, 0);
    assert.equal(lines.length, 1);
    assert.match(lines[0]!, /every probe begins anew$/);
  });
}

test("a damaged file is written anew", () => {
  const path = join(directory, "repaired");
  writeFileSync(path, "rubbish", { mode: 0o600 });
  const { counts, source: states } = source([["probe", STATE]]);
  const writer = openHealthStateWriter(path, states, () => assert.fail("it can be written"));
  counts.changes = 1;
  writer.close();
  assert.equal(read(path).states.size, 1);
  assert.ok(!readFileSync(path, "latin1").includes("rubbish"));
});

test("where the file cannot be written, that is said and nothing fails", () => {
  const lines: string[] = [];
  const { counts, source: states } = source([["probe", STATE]]);
  const writer = openHealthStateWriter(join(directory, "no", "such"), states, (_, message) => lines.push(message));
  counts.changes = 1;
  writer.close();
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /states may not survive a restart$/);
});

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { openLibc } from "../listen/linux/libc.ts";
import { openDataDirectory } from "./data-directory.ts";

let parent = "";
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "signpost-data-"));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

function refusal(pattern: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof OperatorError && pattern.test(error.message);
}

for (const [kind, libc] of [
  ["kernel lock", openLibc()],
  ["process file", undefined],
] as const) {
  test(`one instance at a time has the directory (${kind})`, () => {
    const path = join(parent, "deep", "data");
    const first = openDataDirectory(path, libc);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    assert.equal(statSync(join(path, "key")).mode & 0o777, 0o600);
    assert.equal(first.key.length, 32);
    if (libc !== undefined) assert.throws(() => openDataDirectory(path, libc), refusal(/^another instance runs on/));
    first.release();
    const second = openDataDirectory(path, libc);
    assert.deepEqual(second.key, first.key, "the key stays");
    second.release();
  });
}

test("a process file counts while its process lives, and no longer", () => {
  writeFileSync(join(parent, "lock.pid"), `${process.ppid}\n`);
  assert.throws(() => openDataDirectory(parent, undefined), refusal(/^another instance runs on/));
  // No process has a number this large.
  writeFileSync(join(parent, "lock.pid"), "999999999\n");
  openDataDirectory(parent, undefined).release();
});

test("a key that is not whole is refused and left as it is", () => {
  writeFileSync(join(parent, "key"), "short", { mode: 0o600 });
  assert.throws(
    () => openDataDirectory(parent, openLibc()),
    refusal(/^cannot read the key .*: it has 5 bytes, not 32$/),
  );
  assert.equal(statSync(join(parent, "key")).size, 5);
  rmSync(join(parent, "key"));
  openDataDirectory(parent, openLibc()).release();
});

test("a path that cannot be a directory is refused", () => {
  const file = join(parent, "file");
  writeFileSync(file, "");
  assert.throws(() => openDataDirectory(file, undefined), refusal(/it is not a directory$/));
  assert.throws(() => openDataDirectory(join(file, "below"), undefined), refusal(/ENOTDIR: not a directory/));
});

test("a directory, a store or a key that other users can use is refused with what mends it", () => {
  const key = join(parent, "key");
  const store = join(parent, "store");
  openDataDirectory(parent, undefined).release();
  for (const mode of [0o770, 0o707, 0o1777]) {
    chmodSync(parent, mode);
    assert.throws(() => openDataDirectory(parent, undefined), refusal(new RegExp(`; .* chmod go-w ${parent}$`)));
  }
  chmodSync(parent, 0o755);
  chmodSync(store, 0o777);
  assert.throws(() => openDataDirectory(parent, undefined), refusal(new RegExp(`; .* chmod go-w ${store}$`)));
  chmodSync(store, 0o700);
  for (const mode of [0o640, 0o604, 0o620]) {
    chmodSync(key, mode);
    assert.throws(() => openDataDirectory(parent, undefined), refusal(new RegExp(`; chmod 600 ${key}$`)));
  }
  chmodSync(key, 0o600);
  openDataDirectory(parent, undefined).release();
});

test("the store is closed to others, whoever made its folder", () => {
  mkdirSync(join(parent, "store"), { mode: 0o755 });
  openDataDirectory(parent, undefined).release();
  assert.equal(statSync(join(parent, "store")).mode & 0o777, 0o700);
});

test("a lock that leads elsewhere makes no file there", () => {
  symlinkSync(join(parent, "elsewhere"), join(parent, "lock"));
  assert.throws(() => openDataDirectory(parent, undefined), refusal(/^cannot use the data directory .*ELOOP/));
  assert.equal(statSync(join(parent, "elsewhere"), { throwIfNoEntry: false }), undefined);
});

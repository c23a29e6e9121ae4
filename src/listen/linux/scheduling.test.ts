import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority, release } from "node:os";
import test from "node:test";
import { startNode } from "../../../tests/scenarios/running-node.ts";
import { ANSWER_SLICE_US } from "../limits.ts";
import { openLibc } from "./libc.ts";
import { askForSlices } from "./scheduling.ts";

const found = openLibc();
assert.ok(found, "these tests need Linux and koffi");
const libc = found;

/** sched_getattr(2) */
const GET_ATTRIBUTES = process.arch === "x64" ? 315 : 275;

/** By a thread's number in /proc/PID/task, or 0 for the calling one. */
function slicesOf(thread: number): { readonly nice: number; readonly sliceUs: number } {
  const attributes = new DataView(new ArrayBuffer(48));
  const address = libc.addressOf(attributes.buffer);
  assert.equal(libc.systemCall(GET_ATTRIBUTES, thread, address, attributes.byteLength, 0), 0);
  return { nice: attributes.getInt32(16, true), sliceUs: Number(attributes.getBigUint64(24, true)) / 1_000 };
}

/** Before 6.12 the kernel takes what is asked and says nothing of it. */
const [major = 0, minor = 0] = release().split(".").map(Number);
const KNOWS_SLICES = major > 6 || (major === 6 && minor >= 12);
const ANSWERED = KNOWS_SLICES ? ANSWER_SLICE_US : 0;

test("a thread that asks for short stretches has them, and its priority stays", () => {
  const before = slicesOf(0);
  askForSlices(libc, 2_000);
  assert.deepEqual(slicesOf(0), { nice: getPriority(0), sliceUs: KNOWS_SLICES ? 2_000 : 0 });
  assert.equal(before.nice, getPriority(0));
});

test("what the system refuses is its error", () => {
  const refusing = { ...libc, systemCall: () => -1, errno: () => 1 };
  assert.throws(() => askForSlices(refusing, 100), { code: "EPERM" });
});

test("of a node's threads those that answer ask for short stretches", async () => {
  await using node = await startNode();
  const tasks = `/proc/${node.child.pid}/task`;
  const slices = new Map<string, number>();
  for (const thread of readdirSync(tasks)) {
    const name = readFileSync(`${tasks}/${thread}/comm`, "utf8").trim();
    if (/^(answer-0|stream|control)$/.test(name)) slices.set(name, slicesOf(Number(thread)).sliceUs);
  }
  assert.equal(slices.get("answer-0"), ANSWERED);
  assert.equal(slices.get("stream"), ANSWERED);
  assert.ok(slices.has("control") && (slices.get("control") !== ANSWERED || !KNOWS_SLICES));
});

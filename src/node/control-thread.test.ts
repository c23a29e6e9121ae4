import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { MessageChannel } from "node:worker_threads";
import { waitFor } from "../../tests/support/wait.ts";
import { CONTROL, createSharedImage } from "../image/shared.ts";
import { enterImage, leaveImage, openView } from "../image/view.ts";
import { type ControlMessage, runControl } from "./control-thread.ts";
import { createNodeStatus } from "./status.ts";

const DEADLINE_MS = 10_000;

function zoneText(hosts: number): string {
  const lines = Array.from({ length: hosts }, (_, index) => `host${index} A 192.0.2.1`);
  return ["$ORIGIN reload.test.", "$TTL 60", "@ SOA ns1 h 1 1 1 1 1", "@ NS ns1", ...lines, "ns1 A 192.0.2.1", ""].join(
    "\n",
  );
}

test("what a reload replaced is freed once the reader that held it has left, without a further reload", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-control-"));
  const file = join(directory, "reload.zone");
  const shared = createSharedImage(7);
  const view = openView(shared);
  const { port1: node, port2: control } = new MessageChannel();
  const messages: ControlMessage[] = [];
  node.on("message", (message: ControlMessage) => messages.push(message));
  const status = createNodeStatus(["control"]);
  const management = { bytes: Uint8Array.of(127, 0, 0, 1), port: 0 };
  try {
    await writeFile(file, zoneText(1_000));
    const zones = [{ name: undefined, file }];
    await runControl({ shared, status, zones, management, version: "0", isFirst: true }, control);
    await waitFor("start", DEADLINE_MS, () => messages.some(({ kind }) => kind === "ready"));
    enterImage(view, 0);
    await writeFile(file, zoneText(10));
    messages.length = 0;
    node.postMessage({ kind: "reload" });
    await waitFor("reload", DEADLINE_MS, () => messages.some(({ kind }) => kind === "log"));
    assert.equal(view.control[CONTROL.NAMES], 1_002 + 12, "the reader holds the former names");
    leaveImage(view, 0);
    await waitFor("freed names", DEADLINE_MS, () => view.control[CONTROL.NAMES] === 12);
  } finally {
    node.postMessage({ kind: "stop" });
    node.close();
    await rm(directory, { recursive: true });
  }
});

/** Two stores that write beside each other and then exchange all that they have. */
import assert from "node:assert/strict";
import type { NodeStore } from "../../src/store/open-store.ts";
import { temporaryStore } from "../support/store.ts";
import { zoneBody } from "../support/store-objects.ts";

export const START = Date.parse("2026-03-01T12:00:00Z");

export async function send(from: NodeStore, to: NodeStore): Promise<void> {
  assert.deepEqual(await to.applyRemote(from.rawItems({ limit: 10_000 }).items), []);
}

export async function exchange(left: NodeStore, right: NodeStore): Promise<void> {
  await send(left, right);
  await send(right, left);
  await send(left, right);
}

export function pair(offsetMs = 0) {
  let nowMs = START;
  const now = () => ++nowMs;
  const first = temporaryStore({ nodeId: "n1", now });
  const second = temporaryStore({ nodeId: "n2", now: () => now() + offsetMs });
  return { first, second, pass: (ms: number) => (nowMs += ms) };
}

export async function withZone(store: NodeStore): Promise<void> {
  await store.write((tx) => {
    tx.put("zone", zoneBody("corp."));
    tx.setState("corp.", "active");
  });
}

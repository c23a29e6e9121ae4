/** Debug capture as the API sees it, of a node that nobody asks. */
import type { DebugView } from "../../src/commands/debug.ts";
import { createDebugCapture } from "../../src/node/debug-capture.ts";

export function fakeDebug(): DebugView {
  const capture = createDebugCapture({ nodeId: "node-1", nowMs: Date.now, eventsDropped: () => 0, onChange: () => {} });
  capture.take(['{"name":"www.example."}'], 0);
  return capture.view;
}

/** The lines of debug capture and the window in which they come. Of this node alone, in the memory of the control thread. */
import type { DebugStatus, DebugView } from "../commands/debug.ts";
import { DEBUG_LINES_MAX } from "./limits.ts";

export type DebugCapture = Disposable & {
  readonly view: DebugView;
  readonly isOpen: () => boolean;
  /** Lines in the order in which they came, and how many before them were lost on their way. */
  readonly take: (lines: readonly string[], lost: number) => void;
};

export type DebugCaptureOptions = {
  readonly nodeId: string;
  readonly nowMs: () => number;
  /** Events that threads had no room for, since they began. */
  readonly eventsDropped: () => number;
  /** The window has been opened or closed. */
  readonly onChange: () => void;
};

type Window = { readonly endsAtMs: number; readonly timer: NodeJS.Timeout; droppedBefore: number };

export function createDebugCapture({ nodeId, nowMs, eventsDropped, onChange }: DebugCaptureOptions): DebugCapture {
  let lines: string[] = [];
  let lost = 0;
  let window: Window | undefined;
  /** While a window is open threads drop events of every query, and each of them would have been a line. */
  const countDropped = (): void => {
    if (window === undefined) return;
    const dropped = eventsDropped();
    lost += dropped - window.droppedBefore;
    window.droppedBefore = dropped;
  };
  const end = (): void => {
    countDropped();
    clearTimeout(window?.timer);
    window = undefined;
  };
  const close = (): void => {
    if (window === undefined) return;
    end();
    onChange();
  };
  const status = (): DebugStatus => {
    countDropped();
    return {
      node_id: nodeId,
      enabled: window !== undefined,
      expires_at: window === undefined ? null : new Date(window.endsAtMs).toISOString(),
      lines: lines.length,
      dropped: lost,
      capacity: DEBUG_LINES_MAX,
    };
  };
  return {
    view: {
      nodeId,
      enable(seconds) {
        end();
        const timer = setTimeout(close, seconds * 1_000).unref();
        window = { endsAtMs: nowMs() + seconds * 1_000, timer, droppedBefore: eventsDropped() };
        onChange();
      },
      disable: close,
      status,
      tail() {
        const { node_id, dropped, capacity } = status();
        return { node_id, dropped, capacity, lines: [...lines] };
      },
      clear() {
        countDropped();
        const count = lines.length;
        lines = [];
        lost = 0;
        return count;
      },
    },
    isOpen: () => window !== undefined,
    take(more, lostBefore) {
      const all = [...lines, ...more];
      const pushedOut = Math.max(all.length - DEBUG_LINES_MAX, 0);
      lines = all.slice(pushedOut);
      lost += lostBefore + pushedOut;
    },
    [Symbol.dispose]: end,
  };
}

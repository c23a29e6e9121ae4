/** Frees what changes of the image have left, a little at a time. */
import { collect } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";

export type Collecting = Disposable & {
  /** To be called after changes: frees some at once, and the rest by itself, some time later. */
  readonly collectSome: () => void;
};

/** Segments of the name table that are gone through at once. */
const SEGMENTS_AT_ONCE = 4;
const PAUSE_MS = 2;

export function createCollecting(writer: ImageWriter): Collecting {
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;
  const collectSome = (): void => {
    if (timer !== undefined || isEnded) return;
    if (!collect(writer, SEGMENTS_AT_ONCE)) return;
    timer = setTimeout(() => {
      timer = undefined;
      collectSome();
    }, PAUSE_MS).unref();
  };
  return {
    collectSome,
    [Symbol.dispose]() {
      isEnded = true;
      clearTimeout(timer);
    },
  };
}

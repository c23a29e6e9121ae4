/**
 * What a transaction in slices has read of what others wrote: single keys and ranges of them, in the texts of overlay.ts.
 * It says yes of a few keys more than were read, and no of none that was.
 */

export type ReadSet = {
  readonly addKey: (text: string) => void;
  /** From `start` on and before `end`. */
  readonly addRange: (start: string, end: string) => void;
  readonly has: (text: string) => boolean;
};

export function makeReadSet(): ReadSet {
  const keys = new Set<string>();
  const prefixes = new Set<string>();
  const lengths = new Set<number>();
  return {
    addKey: (text) => void keys.add(text),
    addRange: (start, end) => {
      const prefix = prefixOf(start, end);
      prefixes.add(prefix);
      lengths.add(prefix.length);
    },
    has: (text) => {
      if (keys.has(text)) return true;
      for (const length of lengths) if (length <= text.length && prefixes.has(text.slice(0, length))) return true;
      return false;
    },
  };
}

/** With which all keys of the range begin. Ranges mostly are all keys of a prefix, and so end where its last byte is one more. */
function prefixOf(start: string, end: string): string {
  const last = end.length - 1;
  let length = 0;
  while (length < last && start[length] === end[length]) length++;
  const isPrefix = length === last && start.charCodeAt(last) + 1 === end.charCodeAt(last);
  return start.slice(0, isPrefix ? last + 1 : length);
}

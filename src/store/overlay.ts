/**
 * What transactions wrote before it is in the database: keys in order, each with its new value or none. A transaction is
 * laid over those of its group, the group over the database, and the group goes to the disk as one batch.
 */

/** A row's key as one character a byte: such texts compare as the bytes do, and a Map finds them. */
export type KeyText = string;
export type RowKey = Uint8Array | KeyText;

/** null: the row is removed. */
export type Written = string | null;
export type Cell = { readonly key: KeyText; readonly value: Written };

export type Overlay = {
  /** undefined where nothing of that row was written. */
  readonly get: (key: KeyText) => Written | undefined;
  readonly set: (key: KeyText, value: Written) => void;
  /** From `start` on and before `end`, in the order of keys. */
  readonly range: (start: KeyText, end: KeyText) => readonly Cell[];
  /** In no order that matters. */
  readonly entries: () => Iterable<readonly [KeyText, Written]>;
  readonly size: () => number;
};

/** Keys of one block, so that an insertion moves few of them: a big import writes some hundred thousand rows. */
const BLOCK_KEYS_MAX = 512;
/** More keys than these are sorted at once, fewer are put each in its place. */
const INSERTED_MAX = 64;

export function textOf(key: Uint8Array): KeyText {
  const bytes = key instanceof Buffer ? key : Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return bytes.toString("latin1");
}

export function bytesOf(key: KeyText): Buffer {
  return Buffer.from(key, "latin1");
}

/** The first index at which `isAtLeast` holds, which it does for all behind it too. */
function firstIndex(length: number, isAtLeast: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAtLeast(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function makeOverlay(): Overlay {
  const cells = new Map<KeyText, Written>();
  /** Sorted keys in sorted blocks, none of them empty. */
  let blocks: string[][] = [];
  /** Not in a block yet: most transactions that write many rows ask for no range. */
  let unsorted: string[] = [];
  const blockOf = (text: string) => firstIndex(blocks.length, (index) => (blocks[index]?.at(-1) ?? "") >= text);
  const placeOf = (block: readonly string[], text: string) =>
    firstIndex(block.length, (index) => (block[index] ?? "") >= text);
  const insert = (text: string) => {
    if (blocks.length === 0) blocks.push([]);
    const at = Math.min(blockOf(text), blocks.length - 1);
    const block = blocks[at] ?? [];
    block.splice(placeOf(block, text), 0, text);
    if (block.length > BLOCK_KEYS_MAX) blocks.splice(at + 1, 0, block.splice(BLOCK_KEYS_MAX / 2));
  };
  const sort = () => {
    if (unsorted.length <= INSERTED_MAX) for (const text of unsorted) insert(text);
    else blocks = inBlocks([...blocks.flat(), ...unsorted].sort());
    unsorted = [];
  };
  return {
    get: (text) => cells.get(text),
    set: (key, value) => {
      const size = cells.size;
      cells.set(key, value);
      if (cells.size > size) unsorted.push(key);
    },
    range: (start, end) => {
      const found: Cell[] = [];
      if (cells.size === 0) return found;
      if (unsorted.length > 0) sort();
      for (let at = blockOf(start); at < blocks.length; at++) {
        const block = blocks[at] ?? [];
        for (let index = placeOf(block, start); index < block.length; index++) {
          const key = block[index] ?? "";
          if (key >= end) return found;
          const value = cells.get(key);
          if (value !== undefined) found.push({ key, value });
        }
      }
      return found;
    },
    entries: () => cells,
    size: () => cells.size,
  };
}

function inBlocks(sorted: readonly string[]): string[][] {
  const blocks: string[][] = [];
  for (let at = 0; at < sorted.length; at += BLOCK_KEYS_MAX / 2) blocks.push(sorted.slice(at, at + BLOCK_KEYS_MAX / 2));
  return blocks;
}

/** Lays what `above` has over `below`. */
export function layOver(below: Overlay, above: Overlay): void {
  for (const [key, value] of above.entries()) below.set(key, value);
}

/** Adds to `above` what `below` has and it has not. */
export function layUnder(above: Overlay, below: Overlay): void {
  for (const [key, value] of below.entries()) if (above.get(key) === undefined) above.set(key, value);
}

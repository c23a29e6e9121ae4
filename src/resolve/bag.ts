/**
 * What is open, in no order. A Set whose members come and go all the time leaves, each time that it is laid out anew, a
 * dead table behind that names the members of then and the table after it: the collector takes them for alive, and copies
 * a third of all that was ever in it.
 */

/** A member knows where it lies; -1: in no bag. */
export type Member = { place: number };

export type Bag<Item extends Member> = {
  readonly add: (item: Item) => void;
  /** Nothing happens where it is not in. */
  readonly remove: (item: Item) => void;
  readonly size: () => number;
  /** A copy, so that they may be removed meanwhile. */
  readonly all: () => readonly Item[];
};

export function createBag<Item extends Member>(): Bag<Item> {
  const items: Item[] = [];
  return {
    add: (item) => {
      item.place = items.length;
      items.push(item);
    },
    remove: (item) => {
      const last = items.at(-1);
      if (item.place < 0 || last === undefined) return;
      items[item.place] = last;
      last.place = item.place;
      items.pop();
      item.place = -1;
    },
    size: () => items.length,
    all: () => [...items],
  };
}

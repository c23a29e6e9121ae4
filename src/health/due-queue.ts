/** Items in the order of their due times: a binary heap in which each item knows its place, so that it can leave it. */

export type Due = {
  /** Milliseconds of the queue's clock. */
  dueMs: number;
  /** Place in the heap, -1 outside of it. Writer: the queue. */
  place: number;
};

export type DueQueue<Item extends Due> = Item[];

export function addDue<Item extends Due>(queue: DueQueue<Item>, item: Item): void {
  item.place = queue.length;
  queue.push(item);
  rise(queue, item);
}

/** Takes an item out, wherever it is; nothing happens where it is not in the queue. */
export function removeDue<Item extends Due>(queue: DueQueue<Item>, item: Item): void {
  const { place } = item;
  if (place < 0) return;
  item.place = -1;
  const last = queue.pop()!;
  if (last === item) return;
  last.place = place;
  queue[place] = last;
  rise(queue, last);
  sink(queue, last);
}

function rise<Item extends Due>(queue: DueQueue<Item>, item: Item): void {
  while (item.place > 0) {
    const parent = queue[(item.place - 1) >> 1]!;
    if (parent.dueMs <= item.dueMs) return;
    swap(queue, parent, item);
  }
}

function sink<Item extends Due>(queue: DueQueue<Item>, item: Item): void {
  for (;;) {
    const left = queue[item.place * 2 + 1];
    if (left === undefined) return;
    const right = queue[item.place * 2 + 2];
    const child = right !== undefined && right.dueMs < left.dueMs ? right : left;
    if (item.dueMs <= child.dueMs) return;
    swap(queue, item, child);
  }
}

function swap<Item extends Due>(queue: DueQueue<Item>, upper: Item, lower: Item): void {
  const place = upper.place;
  upper.place = lower.place;
  lower.place = place;
  queue[upper.place] = upper;
  queue[lower.place] = lower;
}

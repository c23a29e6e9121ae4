/** Pushes `total` records with rising tokens, one to four at once, with pauses that the other end may fall asleep in. */
import { workerData } from "node:worker_threads";
import { TRANSPORT } from "../../../src/image/counters.ts";
import type { SharedImage } from "../../../src/image/shared.ts";
import { createHandover } from "../../../src/listen/handover.ts";

type Data = { readonly shared: SharedImage; readonly thread: number; readonly total: number };
const { shared, thread, total }: Data = workerData;
const handover = createHandover(shared, thread);
const query = new Uint8Array(40);
const address = Uint8Array.of(127, 0, 0, 1);

let random = thread;
function next(below: number): number {
  random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
  return (random >>> 8) % below;
}

for (let token = 0; token < total; ) {
  const end = Math.min(total, token + 1 + next(4));
  for (; token < end; token++) {
    while (!handover.pushMessage(token, TRANSPORT.TCP, address, 1, query, 0, query.length));
  }
  handover.wake();
  for (let idle = next(2) * next(200_000); idle > 0; idle--);
}

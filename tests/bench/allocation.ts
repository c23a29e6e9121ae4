import { getHeapStatistics } from "node:v8";
import { TRANSPORT } from "../../src/image/counters.ts";
import { createLoadedAnswerer } from "../fuzz/subject.ts";
import { inquiries, ZONES } from "../interop/zone-questions.ts";
import { encodeQuery } from "../support/dns-message.ts";

export type Allocation = {
  readonly answers: number;
  /** Bytes that the JavaScript heap handed out while they were made. */
  readonly allocatedBytes: number;
  readonly heapGrowthBytes: number;
  readonly nanosecondsEach: number;
};

/** As many datagrams as a batch of the listener holds. */
const BATCH = 64;
const ROOM = 4096;
const COOKIE = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);

/** V8 counts what it allocates, collected since or not, which the growth of a heap does not show. */
function allocatedBytes(): number {
  const statistics: Readonly<Record<string, number>> = { ...getHeapStatistics() };
  const { total_allocated_bytes: bytes } = statistics;
  if (bytes === undefined) throw new Error("this Node does not count allocated bytes");
  return bytes;
}

/** The UDP queries of the differential test, every second one with a cookie. */
function corpus(): Buffer[] {
  const udp = inquiries().filter(({ transport }) => transport === "udp");
  return udp.map((inquiry, index) =>
    encodeQuery(index % 2 === 0 ? inquiry : { ...inquiry, edns: { options: [{ code: 10, data: COOKIE }] } }),
  );
}

/**
 * Answers every query of the corpus in turn until `answers` are made, after `warmUp` others, in this thread and in
 * batches as the listener does, and tells what that allocated. `overrides` as `publishOverrides` has them.
 */
export function measureAllocation(answers: number, warmUp: number, overrides = ""): Allocation {
  const answerer = createLoadedAnswerer(ZONES, overrides);
  const queries = corpus();
  const bytes = new Uint8Array(ROOM);
  const address = Uint8Array.of(127, 0, 0, 1);
  const run = (count: number) => {
    for (let done = 0, next = 0; done < count; done += BATCH) {
      answerer.enter();
      for (let slot = 0; slot < BATCH; slot += 1) {
        const query = queries[next]!;
        next = next + 1 === queries.length ? 0 : next + 1;
        bytes.set(query, 0);
        answerer.answer(bytes, 0, query.length, ROOM, address, 0, 4, TRANSPORT.UDP);
      }
      answerer.leave();
    }
  };
  run(warmUp);
  const heapBefore = process.memoryUsage().heapUsed;
  const before = allocatedBytes();
  const startedAt = performance.now();
  run(answers);
  const elapsedMs = performance.now() - startedAt;
  return {
    answers,
    allocatedBytes: allocatedBytes() - before,
    heapGrowthBytes: process.memoryUsage().heapUsed - heapBefore,
    nanosecondsEach: (elapsedMs * 1e6) / answers,
  };
}

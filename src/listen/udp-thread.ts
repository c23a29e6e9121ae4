import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { threadCounters } from "../image/counters.ts";
import { createFailureReporter } from "./failure-reports.ts";
import { createHandover } from "./handover.ts";
import { createBatch } from "./linux/batch.ts";
import { openLibc } from "./linux/libc.ts";
import { answerSoon } from "./linux/scheduling.ts";
import { createPollSet, createStopwatch } from "./linux/waiting.ts";
import type { ListenerThreadData, ListenerThreadMessage } from "./threads.ts";
import { runBatchLoop } from "./udp-batch.ts";

/** An answer thread: serves its sockets until the image's STOP word is set. */
export function runUdpThread(data: ListenerThreadData, port: MessagePort, makeAnswerer = createAnswerer): void {
  const { shared, thread, options } = data;
  const libc = openLibc();
  if (libc === undefined) throw new Error("the batched UDP listener needs Linux and koffi");
  answerSoon(libc);
  const sockets = data.sockets.map(({ address, descriptor }) => ({ address, descriptor: descriptor ?? -1 }));
  const loop = {
    batches: sockets.map(({ address, descriptor }) => createBatch(libc, descriptor, address)),
    pollSet: createPollSet(
      libc,
      sockets.map(({ descriptor }) => descriptor),
    ),
    stopwatch: createStopwatch(libc),
    answerer: makeAnswerer(shared, { thread, forwards: true, logs: "socket-names", ...options }),
    handover: createHandover(shared, thread),
    counters: threadCounters(shared, thread),
    control: new Int32Array(shared.control),
    onFailure: createFailureReporter(port),
  };
  const serving: ListenerThreadMessage = { kind: "serving" };
  port.postMessage(serving);
  runBatchLoop(loop);
}

import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { threadCounters } from "../image/counters.ts";
import { createFailureReporter } from "./failure-reports.ts";
import type { ListenerThreadData, ListenerThreadMessage, SupervisorMessage } from "./threads.ts";
import { serveDgram } from "./udp-dgram.ts";

/** An answer thread without batched system calls: serves its sockets until "stop". */
export async function runDgramThread(
  data: ListenerThreadData,
  port: MessagePort,
  makeAnswerer = createAnswerer,
): Promise<void> {
  const { shared, thread, options } = data;
  const service = {
    answerer: makeAnswerer(shared, { thread, ...options }),
    counters: threadCounters(shared, thread),
    onFailure: createFailureReporter(port),
  };
  const sockets = await Promise.all(data.sockets.map((socket) => serveDgram(service, socket)));
  port.once("message", (_: SupervisorMessage) => {
    for (const socket of sockets) socket.close();
  });
  const serving: ListenerThreadMessage = { kind: "serving" };
  port.postMessage(serving);
}

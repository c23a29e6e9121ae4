import type { Socket } from "node:dgram";
import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { threadCounters } from "../image/counters.ts";
import { createFailureReporter } from "./failure-reports.ts";
import type { ListenerThreadData, ListenerThreadMessage, SupervisorMessage } from "./threads.ts";
import { serveDgram } from "./udp-dgram.ts";

/** An answer thread without batched system calls: loads, says so, serves from "serve" until "stop". */
export function runDgramThread(data: ListenerThreadData, port: MessagePort, makeAnswerer = createAnswerer): void {
  const { shared, thread, options } = data;
  const service = {
    answerer: makeAnswerer(shared, { thread, ...options }),
    counters: threadCounters(shared, thread),
    onFailure: createFailureReporter(port),
  };
  let sockets: readonly Socket[] = [];
  port.on("message", async (message: SupervisorMessage) => {
    if (message.kind === "serve") {
      sockets = await Promise.all(data.sockets.map((socket) => serveDgram(service, socket)));
      return;
    }
    for (const socket of sockets) socket.close();
    port.close();
  });
  const ready: ListenerThreadMessage = { kind: "ready" };
  port.postMessage(ready);
}

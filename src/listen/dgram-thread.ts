import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { threadCounters } from "../image/counters.ts";
import { createFailureReporter } from "./failure-reports.ts";
import { createResolving } from "./resolving.ts";
import type { ListenerThreadMessage, LoopThreadData, SupervisorMessage } from "./threads.ts";
import { serveDgram } from "./udp-dgram.ts";

/** An answer thread without batched system calls: serves its sockets until "stop". */
export async function runDgramThread(
  data: LoopThreadData,
  port: MessagePort,
  makeAnswerer = createAnswerer,
): Promise<void> {
  const { shared, thread, options } = data;
  const resolving = createResolving({ ...data, port: data.resolvePort, now: () => performance.now() });
  const service = {
    answerer: makeAnswerer(shared, { thread, forwards: true, logs: "addresses", ...options }),
    resolving,
    counters: threadCounters(shared, thread),
    onFailure: createFailureReporter(port),
  };
  const sockets = await Promise.all(data.sockets.map((socket) => serveDgram(service, socket)));
  port.on("message", (message: SupervisorMessage) => {
    if (message.kind === "resolve-port") return resolving.connect(message.port);
    resolving.close();
    for (const socket of sockets) socket.close();
    port.unref();
  });
  const serving: ListenerThreadMessage = { kind: "serving" };
  port.postMessage(serving);
}

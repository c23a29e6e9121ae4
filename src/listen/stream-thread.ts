import { createServer, type Server } from "node:net";
import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import { hostText } from "./address.ts";
import { createFailureReporter } from "./failure-reports.ts";
import { STREAM_LIMITS, TCP_BACKLOG } from "./limits.ts";
import { duplicateDescriptor, openLibc } from "./linux.ts";
import { createStreamService } from "./stream.ts";
import type { ListenerThreadData, ListenerThreadMessage, SupervisorMessage, ThreadSocket } from "./threads.ts";

/** The stream thread: loads, says so, accepts from "serve" until "stop". */
export function runStreamThread(data: ListenerThreadData, port: MessagePort, makeAnswerer = createAnswerer): void {
  const { shared, thread, options } = data;
  const service = createStreamService({
    answerer: makeAnswerer(shared, { thread, ...options }),
    counters: threadCounters(shared, thread),
    limits: STREAM_LIMITS,
    onFailure: createFailureReporter(port),
    now: () => performance.now(),
  });
  const servers: Server[] = [];
  port.on("message", (message: SupervisorMessage) => {
    if (message.kind === "serve") {
      for (const socket of data.sockets) {
        const server = createServer({ allowHalfOpen: true, noDelay: true }, (connection) =>
          service.accept(connection, TRANSPORT.TCP),
        );
        listen(server, socket);
        servers.push(server);
      }
      return;
    }
    for (const server of servers) server.close();
    void service.drain().then(() => port.close());
  });
  const ready: ListenerThreadMessage = { kind: "ready" };
  port.postMessage(ready);
}

/** The thread serves a duplicate: when it dies, its handles close, and the supervisor's own descriptor stays open. */
function listen(server: Server, { address, descriptor }: ThreadSocket): void {
  const libc = openLibc();
  if (descriptor !== undefined && libc !== undefined) {
    server.listen({ fd: duplicateDescriptor(libc, descriptor), backlog: TCP_BACKLOG });
  } else {
    server.listen({ host: hostText(address), port: address.port, ipv6Only: true, backlog: TCP_BACKLOG });
  }
}

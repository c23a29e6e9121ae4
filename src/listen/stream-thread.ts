import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { MessagePort } from "node:worker_threads";
import { createAnswerer } from "../answer/answerer.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import { hostText } from "./address.ts";
import { createFailureReporter } from "./failure-reports.ts";
import { STREAM_LIMITS, TCP_BACKLOG } from "./limits.ts";
import { openLibc } from "./linux/libc.ts";
import { answerSoon } from "./linux/scheduling.ts";
import { duplicateDescriptor } from "./linux/socket.ts";
import { createResolving } from "./resolving.ts";
import { createStreamService } from "./stream.ts";
import type { ListenerThreadMessage, LoopThreadData, SupervisorMessage, ThreadSocket } from "./threads.ts";

/** The stream thread: accepts on its sockets until "stop", then lets the connections finish. */
export async function runStreamThread(
  data: LoopThreadData,
  port: MessagePort,
  makeAnswerer = createAnswerer,
): Promise<void> {
  const { shared, thread, options } = data;
  answerSoon(openLibc());
  const now = () => performance.now();
  const resolving = createResolving({ ...data, port: data.resolvePort, now });
  const service = createStreamService({
    answerer: makeAnswerer(shared, { thread, forwards: true, logs: "addresses", ...options }),
    resolving,
    counters: threadCounters(shared, thread),
    limits: STREAM_LIMITS,
    onFailure: createFailureReporter(port),
    now,
  });
  const accept = (connection: Socket) => service.accept(connection, TRANSPORT.TCP);
  const servers = data.sockets.map(() => createServer({ allowHalfOpen: true, noDelay: true }, accept));
  await Promise.all(servers.map((server, index) => listen(server, data.sockets[index]!)));
  port.on("message", (message: SupervisorMessage) => {
    if (message.kind === "resolve-port") return resolving.connect(message.port);
    for (const server of servers) server.close();
    port.unref();
    void service.drain().then(resolving.close);
  });
  const serving: ListenerThreadMessage = { kind: "serving" };
  port.postMessage(serving);
}

/** The thread serves a duplicate: when it dies, its handles close, and the supervisor's own descriptor stays open. */
async function listen(server: Server, { address, descriptor }: ThreadSocket): Promise<void> {
  const libc = openLibc();
  const listening = once(server, "listening");
  if (descriptor !== undefined && libc !== undefined) {
    server.listen({ fd: duplicateDescriptor(libc, descriptor), backlog: TCP_BACKLOG });
  } else {
    server.listen({ host: hostText(address), port: address.port, ipv6Only: true, backlog: TCP_BACKLOG });
  }
  await listening;
}

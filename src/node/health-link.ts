import type { MessagePort } from "node:worker_threads";
import type { FromHealth, HealthPort, ToHealth } from "../health/messages.ts";

/** The control thread's end: one link for all of its life, whichever health thread is behind it. */
export type HealthLink = HealthPort<ToHealth, FromHealth> &
  Disposable & {
    /** Another health thread has taken over, over a port of its own; what the one before was not told is lost. */
    readonly connect: (port: MessagePort) => void;
  };

/** What arrives before somebody listens waits. */
export function createHealthLink(first: MessagePort): HealthLink {
  let port = first;
  let listener: ((message: FromHealth) => void) | undefined;
  const listen = () => {
    if (listener !== undefined) port.on("message", listener);
  };
  const close = () => port.close();
  return {
    post: (message) => port.postMessage(message),
    onMessage: (given) => {
      if (listener !== undefined) port.off("message", listener);
      listener = given;
      listen();
    },
    connect: (next) => {
      port.close();
      port = next;
      listen();
    },
    close,
    [Symbol.dispose]: close,
  };
}

import type { MessagePort } from "node:worker_threads";

/** The control thread's end of its way to another thread: one link for all of its life, whichever thread is behind it. */
export type ThreadLink<Out, In> = Disposable & {
  readonly post: (message: Out) => void;
  readonly onMessage: (listener: (message: In) => void) => void;
  readonly close: () => void;
  /** Another thread has taken over, over a port of its own; what the one before was not told is lost. */
  readonly connect: (port: MessagePort) => void;
};

/** What arrives before somebody listens waits. */
export function createThreadLink<Out, In>(first: MessagePort): ThreadLink<Out, In> {
  let port = first;
  let listener: ((message: In) => void) | undefined;
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

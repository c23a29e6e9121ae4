/** The streams that members dial to a node: one of each, the newest. */
import type { Socket } from "node:net";
import type { Connections } from "./peers-connections.ts";
import type { Gate } from "./peers-gate.ts";
import type { Stream } from "./peers-stream.ts";

export type Incoming = {
  readonly accept: (socket: Socket) => void;
  readonly close: (nodeId: string, reason: string) => void;
  readonly streams: () => ReadonlyMap<string, Stream>;
};

/** `onOpen` is told whose stream opened. */
export function createIncoming(connections: Connections, gate: Gate, onOpen: (nodeId: string) => void): Incoming {
  const streams = new Map<string, Stream>();
  const accept = (socket: Socket) => {
    const address = socket.remoteAddress;
    const pass = address === undefined || connections.isClosed() ? undefined : gate.enter(address);
    if (address === undefined || pass === undefined) {
      socket.on("error", () => {});
      socket.destroy();
      if (address === undefined || connections.isClosed()) return;
      const detail = "there are too many connections";
      return connections.note({ kind: "limit", detail }, { role: "acceptor", address, nodeId: undefined });
    }
    connections.begin(
      { role: "acceptor", address, nodeId: undefined },
      {
        begin: (handlers) => connections.tls.accept(socket, handlers),
        onWelcome: ({ nodeId }) => streams.get(nodeId)?.close("a newer stream takes its place"),
        onOpen: (stream) => {
          pass.settle();
          streams.set(stream.peer.nodeId, stream);
          onOpen(stream.peer.nodeId);
        },
        onFailed: () => pass.settle(),
        onEnd: (stream) => {
          if (streams.get(stream.peer.nodeId) === stream) streams.delete(stream.peer.nodeId);
        },
        onGone: pass.leave,
      },
    );
  };
  return { accept, close: (nodeId, reason) => streams.get(nodeId)?.close(reason), streams: () => streams };
}

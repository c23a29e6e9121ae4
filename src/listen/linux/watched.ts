/** A descriptor of ours in the event loop of a thread of Node. */
import { createSocket } from "node:dgram";
import { type Libc, systemError } from "./libc.ts";

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;

export type WatchedDescriptor = { readonly close: () => void };

/**
 * Calls `onReadable` in this thread's event loop as long as the descriptor can be read. The event loop may end without it.
 *
 * Node watches only what it takes for a socket. So it is given a UDP socket, behind whose number the other open file is
 * then put, before the event loop has seen either: where that can be read, Node's read fails and it emits an error. All
 * that happens on the way is Node's own, so that a thread may be ended at any moment; a callback from native code that
 * comes while a thread ends would take the process with it.
 */
export function watchDescriptor(libc: Libc, descriptor: number, onReadable: () => void): WatchedDescriptor {
  const number = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (number < 0) throw systemError(libc.errno(), "socket");
  const socket = createSocket("udp4");
  socket.on("error", onReadable);
  socket.bind({ fd: number });
  if (libc.replace(descriptor, number) < 0) {
    const error = systemError(libc.errno(), "dup2");
    socket.close();
    throw error;
  }
  socket.unref();
  return { close: () => socket.close() };
}

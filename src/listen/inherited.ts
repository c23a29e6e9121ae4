/**
 * Sockets that the service manager has opened and handed over (the sd_listen_fds protocol): descriptors from 3 on,
 * counted by LISTEN_FDS, meant for the process that LISTEN_PID names.
 */
import type { Address } from "./address.ts";
import type { Libc } from "./linux/libc.ts";
import { describeSocket, type SocketKind } from "./linux/socket.ts";

const FIRST_DESCRIPTOR = 3;

export type InheritedSocket = {
  readonly descriptor: number;
  readonly kind: SocketKind;
  readonly address: Address;
  /** From LISTEN_FDNAMES; the descriptor's number where that is not set. */
  readonly name: string;
};

/**
 * The inherited sockets; descriptors that are no UDP socket and no listening TCP socket are listed apart.
 * Takes the variables out of `environment`, so that no child takes the descriptors for its own.
 */
export function takeInheritedSockets(
  libc: Libc,
  environment: NodeJS.ProcessEnv,
  processId: number,
): { readonly sockets: readonly InheritedSocket[]; readonly unusable: readonly string[] } {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES } = environment;
  delete environment.LISTEN_PID;
  delete environment.LISTEN_FDS;
  delete environment.LISTEN_FDNAMES;
  const count = LISTEN_PID === String(processId) && /^\d{1,4}$/.test(LISTEN_FDS ?? "") ? Number(LISTEN_FDS) : 0;
  const names = (LISTEN_FDNAMES ?? "").split(":");
  const sockets: InheritedSocket[] = [];
  const unusable: string[] = [];
  for (let index = 0; index < count; index++) {
    const descriptor = FIRST_DESCRIPTOR + index;
    const name = names[index] || String(descriptor);
    const socket = describeSocket(libc, descriptor);
    if (socket === undefined) unusable.push(name);
    else sockets.push({ descriptor, name, ...socket });
  }
  return { sockets, unusable };
}

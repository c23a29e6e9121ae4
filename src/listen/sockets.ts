/**
 * The sockets of the DNS listeners. The supervisor opens them before any thread starts and keeps them open until the
 * end: a dead thread's socket stays in its reuse-port group and swallows queries, so its replacement gets the same one.
 */
import { errorCode, errorText, OperatorError } from "../base/errors.ts";
import { type Address, addressToText, sameAddress } from "./address.ts";
import type { InheritedSocket } from "./inherited.ts";
import type { Libc } from "./linux/libc.ts";
import { closeDescriptor, describeSocket, openTcpListener, openUdpSocket, prepareUdpSocket } from "./linux/socket.ts";

/** One address that is served. */
export type Listener = {
  /** With the port that the system chose where port 0 was asked for. */
  readonly address: Address;
  /** UDP sockets; thread n serves number n modulo their count. None: the threads bind the address themselves. */
  readonly udp: readonly number[];
  readonly tcp: number | undefined;
};

/** Ports tried for port 0 until one is free over both UDP and TCP. */
const PORT_ATTEMPTS = 20;

/** What the operator reads when an address cannot be bound. `use` names what listens there. */
export function bindFailure(use: string, address: Address, thrown: unknown): OperatorError {
  return new OperatorError(`cannot listen on ${addressToText(address)} (${use}): ${bindFault(thrown)}`);
}

function bindFault(thrown: unknown): string {
  switch (errorCode(thrown)) {
    case "EADDRINUSE":
      return "another program uses this address and port";
    case "EACCES":
      return "no permission for a port below 1024; grant CAP_NET_BIND_SERVICE, use socket activation or a higher port";
    case "EADDRNOTAVAIL":
      return "this machine does not have that address";
    case "EAFNOSUPPORT":
      return "this machine does not have that address family";
    default:
      return errorText(thrown);
  }
}

/**
 * Opens every socket of the listeners, `threads` UDP sockets and one TCP socket an address; an inherited socket on
 * the same address is taken instead. Throws OperatorError, with nothing left open.
 */
export function openListeners(
  libc: Libc,
  addresses: readonly Address[],
  threads: number,
  inherited: readonly InheritedSocket[],
): readonly Listener[] {
  const opened: Listener[] = [];
  try {
    for (const address of addresses) opened.push(openListener(libc, address, threads, inherited));
    return opened;
  } catch (error) {
    closeListeners(libc, opened);
    throw error;
  }
}

export function closeListeners(libc: Libc, listeners: readonly Listener[]): void {
  for (const { udp, tcp } of listeners) {
    for (const descriptor of [...udp, tcp]) if (descriptor !== undefined) closeDescriptor(libc, descriptor);
  }
}

function openListener(libc: Libc, address: Address, threads: number, inherited: readonly InheritedSocket[]): Listener {
  const given = inherited.filter((socket) => sameAddress(socket.address, address));
  const givenUdp = given.filter(({ kind }) => kind === "udp").map(({ descriptor }) => descriptor);
  const givenTcp = given.find(({ kind }) => kind === "tcp")?.descriptor;
  const bound = givenUdp.length > 0 ? { address, tcp: undefined } : bindProbe(libc, address, givenTcp === undefined);
  const tcp = givenTcp ?? bound.tcp ?? openTcp(libc, bound.address);
  const udp = [...givenUdp];
  try {
    while (givenUdp.length === 0 && udp.length < threads) udp.push(openUdp(libc, bound.address, true));
    for (const descriptor of udp) prepareUdpSocket(libc, descriptor, bound.address);
  } catch (error) {
    closeListeners(libc, [{ address, udp, tcp }]);
    throw error;
  }
  return { address: bound.address, udp, tcp };
}

/**
 * Finds out whether the address is free, and for port 0 which port it becomes. SO_REUSEPORT would let a second
 * program share a port in use without a word, so the first bind does without it.
 */
function bindProbe(
  libc: Libc,
  address: Address,
  withTcp: boolean,
): { readonly address: Address; readonly tcp: number | undefined } {
  for (let attempt = 1; ; attempt++) {
    const probe = openUdp(libc, address, false);
    const chosen = describeSocket(libc, probe)?.address ?? address;
    try {
      return { address: chosen, tcp: withTcp ? openTcp(libc, chosen) : undefined };
    } catch (error) {
      if (address.port !== 0 || attempt === PORT_ATTEMPTS) throw error;
    } finally {
      closeDescriptor(libc, probe);
    }
  }
}

function openUdp(libc: Libc, address: Address, shared: boolean): number {
  try {
    return openUdpSocket(libc, address, shared);
  } catch (error) {
    throw bindFailure("UDP", address, error);
  }
}

function openTcp(libc: Libc, address: Address): number {
  try {
    return openTcpListener(libc, address);
  } catch (error) {
    throw bindFailure("TCP", address, error);
  }
}

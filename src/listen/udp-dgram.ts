/**
 * UDP over Node's own sockets, where batched system calls are missing or unwanted: the same answers, one datagram at a
 * time, on an event loop.
 */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { type Answerer, TAKEN } from "../answer/answerer.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, observeLatency, TRANSPORT } from "../image/counters.ts";
import { type Address, clientAddress, hostText } from "./address.ts";
import { UDP_SLOT_BYTES, UDP_SOCKET_BUFFER_BYTES } from "./limits.ts";
import { openLibc } from "./linux/libc.ts";
import { duplicateDescriptor } from "./linux/socket.ts";
import type { Resolving } from "./resolving.ts";
import type { ThreadSocket } from "./threads.ts";

export type DgramService = {
  readonly answerer: Answerer;
  /** Takes the queries that have to be resolved. */
  readonly resolving: Resolving;
  readonly counters: Float64Array;
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
};

/** A socket of the address's own family, not yet bound. */
export function openDgramSocket(address: Address): Socket {
  // IPv4 sockets refuse to be bound with this option set.
  return createSocket(address.bytes.length === 4 ? { type: "udp4" } : { type: "udp6", ipv6Only: true });
}

/** Binds and serves a socket until it is closed. A given descriptor is duplicated, so that closing leaves it open. */
export async function serveDgram(service: DgramService, { address, descriptor }: ThreadSocket): Promise<Socket> {
  const socket = openDgramSocket(address);
  const slot = new Uint8Array(UDP_SLOT_BYTES);
  socket.on("message", (query, client) => answerDatagram(service, socket, slot, query, client));
  socket.on("error", () => {
    service.counters[COUNTER.RECEIVE_ERRORS]! += 1;
  });
  // Taking over a descriptor reports "listening" before bind returns.
  const listening = once(socket, "listening");
  const libc = openLibc();
  if (descriptor !== undefined && libc !== undefined) socket.bind({ fd: duplicateDescriptor(libc, descriptor) });
  else socket.bind({ address: hostText(address), port: address.port, exclusive: true });
  await listening;
  socket.setRecvBufferSize(UDP_SOCKET_BUFFER_BYTES);
  return socket;
}

function answerDatagram(
  service: DgramService,
  socket: Socket,
  slot: Uint8Array,
  query: Buffer,
  client: RemoteInfo,
): void {
  const { answerer, counters, resolving } = service;
  const begin = performance.now();
  const address = clientAddress(client.address);
  if (address === undefined) return;
  const received = Math.min(query.length, UDP_SLOT_BYTES);
  slot.set(query.subarray(0, received));
  const { UDP } = TRANSPORT;
  let length = 0;
  answerer.enter();
  answerer.client.port = client.port;
  try {
    length = answerer.answer(slot, 0, received, UDP_SLOT_BYTES, address, 0, address.length, UDP);
    if (answerer.refresh !== 0) resolving.pushRefresh(answerer.refresh);
    if (length === TAKEN && !handOver(service, socket, slot, received, address, client)) {
      counters[COUNTER.HANDOVER_FULL]! += 1;
      length = answerer.answerNow(slot, 0, received, UDP_SLOT_BYTES, address, 0, address.length, UDP, EDE.OTHER);
    }
  } catch (thrown) {
    length = 0;
    counters[COUNTER.FAILED]! += 1;
    service.onFailure(query, thrown);
  }
  answerer.leave();
  counters[COUNTER.BATCHES]! += 1;
  if (length === TAKEN || answerer.refresh !== 0) resolving.wake();
  if (length === TAKEN) return;
  observeLatency(counters, Math.round((performance.now() - begin) * 1000), 1);
  // The socket sends later where the kernel is busy, so the answer needs memory of its own.
  if (length > 0) sendAnswer(service, socket, Buffer.from(slot.subarray(0, length)), client);
}

/** False: there is no room for it. */
function handOver(
  service: DgramService,
  socket: Socket,
  slot: Uint8Array,
  received: number,
  address: Uint8Array,
  client: RemoteInfo,
): boolean {
  const { UDP } = TRANSPORT;
  if (!service.resolving.admits(service.answerer.need.route)) return false;
  return service.resolving.handOver(UDP, address, client.port, slot, 0, received, (answer) => {
    if (answer !== undefined) sendAnswer(service, socket, answer, client);
  });
}

function sendAnswer({ counters }: DgramService, socket: Socket, answer: Uint8Array, client: RemoteInfo): void {
  // Nothing can be sent to port 0: `send` throws on it.
  if (client.port === 0) {
    counters[COUNTER.DROPPED]! += 1;
    return;
  }
  socket.send(answer, client.port, client.address, (error) => {
    if (error !== null) counters[COUNTER.DROPPED]! += 1;
  });
}

/** What a record of the way to the thread that resolves says, read where it is looked at: most records only wait. */
import type { Transport } from "../image/counters.ts";
import { HANDOVER, HANDOVER_KIND } from "../image/handover.ts";

/** Where the port stands in a socket name of either family. */
const NAME_PORT = 2;

/** A record as a thread makes it whose answer comes back with `token`, of a query of at most 64 KiB. */
export function messageRecord(token: number, transport: Transport, address: Uint8Array, query: Uint8Array): Uint8Array {
  const record = new Uint8Array(HANDOVER.QUERY + query.length);
  const view = new DataView(record.buffer);
  record[HANDOVER.KIND] = HANDOVER_KIND.MESSAGE;
  record[HANDOVER.TRANSPORT] = transport;
  record[HANDOVER.ADDRESS_BYTES] = address.length;
  view.setInt32(HANDOVER.TOKEN, token, true);
  view.setUint16(HANDOVER.QUERY_BYTES, query.length, true);
  record.set(address, HANDOVER.ADDRESS);
  record.set(query, HANDOVER.QUERY);
  return record;
}

/** HANDOVER_KIND. */
export function recordKind(record: Uint8Array): number {
  return record[HANDOVER.KIND]!;
}

/** TRANSPORT, as a number that came from memory. */
export function recordTransport(record: Uint8Array): number {
  return record[HANDOVER.TRANSPORT]!;
}

/** MESSAGE: the token; DATAGRAM: the index of the socket; REFRESH: the entry's word. */
export function recordToken(record: Uint8Array): number {
  return (
    record[HANDOVER.TOKEN]! |
    (record[HANDOVER.TOKEN + 1]! << 8) |
    (record[HANDOVER.TOKEN + 2]! << 16) |
    (record[HANDOVER.TOKEN + 3]! << 24)
  );
}

/** The client's, 4 or 16 bytes. */
export function recordAddress(record: Uint8Array): Uint8Array {
  return record.subarray(HANDOVER.ADDRESS, HANDOVER.ADDRESS + record[HANDOVER.ADDRESS_BYTES]!);
}

/** The client's. */
export function recordPort(record: Uint8Array): number {
  return (record[HANDOVER.NAME + NAME_PORT]! << 8) | record[HANDOVER.NAME + NAME_PORT + 1]!;
}

/** Of a DATAGRAM: the client's socket name as the kernel gave it. */
export function recordName(record: Uint8Array): Uint8Array {
  return record.subarray(HANDOVER.NAME, HANDOVER.NAME + record[HANDOVER.NAME_BYTES]!);
}

/** Of a DATAGRAM: the control message that its answer takes along; of no bytes for none. */
export function recordControl(record: Uint8Array): Uint8Array {
  return record.subarray(HANDOVER.CONTROL, HANDOVER.CONTROL + uint16(record, HANDOVER.CONTROL_BYTES));
}

export function recordQuery(record: Uint8Array): Uint8Array {
  return record.subarray(HANDOVER.QUERY, HANDOVER.QUERY + uint16(record, HANDOVER.QUERY_BYTES));
}

function uint16(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

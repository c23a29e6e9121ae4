/** Sends answers on sockets that other threads receive on, many with one system call. */
import { UDP_BATCH, UDP_SLOT_BYTES } from "../limits.ts";
import { EINTR, HEADER, HEADER_BYTES, IOV_BYTES, type Libc } from "./libc.ts";

const MSG_DONTWAIT = 0x40;
const NAME_BYTES = 32;
const CONTROL_BYTES = 64;
/** Headers, iovecs, names, control messages, answers: each part is UDP_BATCH long. */
const IOVS_AT = UDP_BATCH * HEADER_BYTES;
const NAMES_AT = IOVS_AT + UDP_BATCH * IOV_BYTES;
const CONTROLS_AT = NAMES_AT + UDP_BATCH * NAME_BYTES;
const SLOTS_AT = CONTROLS_AT + UDP_BATCH * CONTROL_BYTES;
const END = SLOTS_AT + UDP_BATCH * UDP_SLOT_BYTES;

export type ReplySender = {
  /**
   * Takes an answer of at most UDP_SLOT_BYTES along: to the socket name, with the control message (of no bytes for none), both
   * as the kernel gave them. The number of those that could not be sent, where there was no room for another.
   */
  readonly add: (descriptor: number, name: Uint8Array, control: Uint8Array, answer: Uint8Array) => number;
  /** Sends what was added; the number of those that their socket did not take. */
  readonly send: () => number;
};

export function createReplySender(libc: Libc): ReplySender {
  const memory = new ArrayBuffer(END);
  const bytes = new Uint8Array(memory);
  const view = new DataView(memory);
  const base = libc.addressOf(memory);
  /** Of each slot. */
  const descriptors = new Int32Array(UDP_BATCH);
  const nameLengths = new Int32Array(UDP_BATCH);
  const controlLengths = new Int32Array(UDP_BATCH);
  const lengths = new Int32Array(UDP_BATCH);
  let added = 0;

  const putHeader = (place: number, slot: number) => {
    const header = place * HEADER_BYTES;
    const iov = IOVS_AT + place * IOV_BYTES;
    const pointer = (at: number, target: number) =>
      view.setBigUint64(at, BigInt(target === 0 ? 0 : base + target), true);
    const controlLength = controlLengths[slot]!;
    pointer(header + HEADER.name, NAMES_AT + slot * NAME_BYTES);
    view.setUint32(header + HEADER.nameLength, nameLengths[slot]!, true);
    pointer(header + HEADER.iov, iov);
    view.setUint32(header + HEADER.iovLength, 1, true);
    pointer(header + HEADER.control, controlLength === 0 ? 0 : CONTROLS_AT + slot * CONTROL_BYTES);
    view.setUint32(header + HEADER.controlLength, controlLength, true);
    pointer(iov, SLOTS_AT + slot * UDP_SLOT_BYTES);
    view.setUint32(iov + 8, lengths[slot]!, true);
  };
  /** Sends what leaves on one descriptor. The kernel stops at each that the socket refuses. */
  const sendOn = (descriptor: number): number => {
    let total = 0;
    for (let slot = 0; slot < added; slot++) {
      if (descriptors[slot] === descriptor) putHeader(total++, slot);
    }
    let dropped = 0;
    for (let next = 0; next < total; ) {
      const sent = libc.sendmmsg(descriptor, base + next * HEADER_BYTES, total - next, MSG_DONTWAIT);
      if (sent > 0) {
        next += sent;
      } else if (libc.errno() !== EINTR) {
        next += 1;
        dropped += 1;
      }
    }
    return dropped;
  };
  const send = () => {
    let dropped = 0;
    for (let slot = 0; slot < added; slot++) {
      const descriptor = descriptors[slot]!;
      if (descriptors.indexOf(descriptor) === slot) dropped += sendOn(descriptor);
    }
    added = 0;
    return dropped;
  };
  return {
    add: (descriptor, name, control, answer) => {
      const dropped = added === UDP_BATCH ? send() : 0;
      const slot = added++;
      descriptors[slot] = descriptor;
      nameLengths[slot] = name.length;
      controlLengths[slot] = control.length;
      lengths[slot] = answer.length;
      bytes.set(name, NAMES_AT + slot * NAME_BYTES);
      bytes.set(control, CONTROLS_AT + slot * CONTROL_BYTES);
      bytes.set(answer, SLOTS_AT + slot * UDP_SLOT_BYTES);
      return dropped;
    },
    send,
  };
}

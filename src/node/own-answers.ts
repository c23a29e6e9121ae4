/** Questions of the node itself to its own zones and overrides, as they answer now; asking is a matter of microseconds. */
import { createAnswerer } from "../answer/answerer.ts";
import { RCODE } from "../dns/codes.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../dns/message.ts";
import { TRANSPORT, threadCounters } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";

/** The answer for a wire name; undefined where it is none of our names. */
export type AskOwn = (name: Uint8Array, type: number) => Message | undefined;

const SCRATCH_BYTES = 4_096;

/** `thread` is a place among the readers of the image that nobody else has. */
export function createAskOwn(shared: SharedImage, thread: number): AskOwn {
  const options = { thread, nodeId: undefined, maxUdpSize: SCRATCH_BYTES, tcpIdleSeconds: 0 };
  const answerer = createAnswerer(shared, options);
  const counters = threadCounters(shared, thread);
  const room = new Uint8Array(SCRATCH_BYTES);
  const address = Uint8Array.of(127, 0, 0, 1);
  return (name, type) => {
    const { bytes } = encodeMessage(makeQuery(0, name, type));
    room.set(bytes);
    answerer.enter();
    let length: number;
    try {
      length = answerer.answer(room, 0, bytes.length, room.length, address, 0, address.length, TRANSPORT.TCP);
    } finally {
      answerer.leave();
      // These are no queries of clients.
      counters.fill(0);
    }
    const decoded = decodeMessage(room.subarray(0, length));
    return decoded.kind === "message" && decoded.message.rcode !== RCODE.REFUSED ? decoded.message : undefined;
  };
}

/** Cuts the frames of an exchange out of the bytes of its connection. */
import { FRAME_HEADER_BYTES, SEALED_FRAME_BYTES_MAX } from "./codec.ts";
import { MESSAGE_TYPE } from "./wire.ts";

export type Cut =
  | { readonly kind: "frame"; readonly frame: Uint8Array }
  /** More has to come. */
  | { readonly kind: "more" }
  /** Nothing that follows can be told. */
  | { readonly kind: "fault"; readonly detail: string };

export type FrameCutter = {
  readonly add: (chunk: Uint8Array) => void;
  readonly next: () => Cut;
  /** What has been added and not been taken. */
  readonly heldBytes: () => number;
};

const MORE: Cut = { kind: "more" };

/** The frame that the bytes begin, with its label where there is one: how long it is; undefined where that has not come yet. */
function frameBytes(bytes: Uint8Array): number | string | undefined {
  const labelBytes = bytes[0] === MESSAGE_TYPE.LABEL ? 2 + (bytes[1] ?? 0) : 0;
  const type = bytes[labelBytes];
  if (bytes.length < labelBytes + 1) return undefined;
  if (type !== MESSAGE_TYPE.ENCRYPTED) return "what came is not a sealed frame";
  if (bytes.length < labelBytes + FRAME_HEADER_BYTES) return undefined;
  const length = new DataView(bytes.buffer, bytes.byteOffset + labelBytes + 1).getUint32(0);
  if (length > SEALED_FRAME_BYTES_MAX) return `a frame of ${length} bytes is more than may be`;
  return labelBytes + FRAME_HEADER_BYTES + length;
}

/**
 * Memory is at most twice what has come, whatever the length of a frame says, and however small the pieces are in which it
 * comes.
 */
export function createFrameCutter(): FrameCutter {
  let buffer = new Uint8Array();
  let held = 0;
  return {
    heldBytes: () => held,
    add: (chunk) => {
      if (held + chunk.length > buffer.length) {
        const grown = new Uint8Array(Math.max(buffer.length * 2, held + chunk.length));
        grown.set(buffer.subarray(0, held));
        buffer = grown;
      }
      buffer.set(chunk, held);
      held += chunk.length;
    },
    next: () => {
      const length = frameBytes(buffer.subarray(0, held));
      if (length === undefined) return MORE;
      if (typeof length === "string") return { kind: "fault", detail: length };
      if (length > held) return MORE;
      const frame = buffer.subarray(0, length);
      buffer = buffer.slice(length, held);
      held = buffer.length;
      return { kind: "frame", frame };
    },
  };
}

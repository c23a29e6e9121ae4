/**
 * Messages of the membership protocol to bytes and back: wire.ts has their spelling, seal.ts hides and proves them. Transports
 * carry only what this makes.
 */
import type { PacketMessage, StreamMessage } from "./messages.ts";
import { createSealer, SEAL_BYTES } from "./seal.ts";
import { MESSAGE_TYPE, type WireFault } from "./wire.ts";
import { FRAME_BYTES_MAX, LABEL_BYTES_MAX, PACKET_BYTES } from "./wire-limits.ts";
import { decodePacket, decodeStream } from "./wire-read.ts";
import { encodePacket, encodeStream } from "./wire-write.ts";

/**
 * Why bytes are dropped: another key or none ("sealed"), another label, nothing that could be read, more than may be. It is
 * what `MembershipFigures.dropped` counts by.
 */
export type CodecFault = "sealed" | "label" | WireFault;

export type Packed = {
  readonly packet: Uint8Array;
  /** So many of the messages are in it, from the first on. */
  readonly count: number;
};

export type Unpacked =
  | {
      readonly messages: readonly PacketMessage[];
      /** Parts of the packet that could not be read, those of unknown types among them; the others stand. */
      readonly malformed: number;
    }
  | { readonly fault: CodecFault };

export type Codec = {
  /**
   * One packet with as many of the messages, in their order, as fit into 1,400 bytes; the first always. `peerProtocol`: the
   * greatest that the receiver speaks (Versions[1]), 0 where it is unknown. Throws RangeError where there is no message or the
   * first is larger than any packet.
   */
  readonly packPacket: (messages: readonly PacketMessage[], peerProtocol: number) => Packed;
  readonly unpackPacket: (packet: Uint8Array) => Unpacked;
  /** A whole frame for `Exchange.send`. `side`: who dialled sends the request. Throws RangeError above 20 MiB. */
  readonly packFrame: (message: StreamMessage, side: "request" | "reply") => Uint8Array;
  readonly unpackFrame: (frame: Uint8Array) => { readonly message: StreamMessage } | { readonly fault: CodecFault };
};

/**
 * `key`: 16, 24 or 32 bytes for AES-GCM. `label`: at most 255 bytes of UTF-8, which members of one cluster share; it is not
 * secret, and empty is as none.
 */
export type CodecOptions = { readonly key: Uint8Array; readonly label?: string };

/** Type and length, most significant byte first. */
export const FRAME_HEADER_BYTES = 5;

/** What the length in a frame's header may say. */
export const SEALED_FRAME_BYTES_MAX = FRAME_BYTES_MAX + SEAL_BYTES;

/** What stands ahead of labelled bytes, and how long it is; 0 where there is no label ahead, -1 where it is cut off. */
function labelHeaderBytes(bytes: Uint8Array): number {
  if (bytes[0] !== MESSAGE_TYPE.LABEL) return 0;
  const length = 2 + (bytes[1] ?? 0);
  return length === 2 || length > bytes.length ? -1 : length;
}

/** Throws RangeError where the key or the label is none. */
export function createCodec({ key, label = "" }: CodecOptions): Codec {
  const sealer = createSealer(key);
  const labelBytes = Buffer.from(label, "utf8");
  if (labelBytes.length > LABEL_BYTES_MAX) throw new RangeError(`a label has at most ${LABEL_BYTES_MAX} bytes`);
  const labelHeader =
    label === "" ? new Uint8Array() : Buffer.concat([Uint8Array.of(MESSAGE_TYPE.LABEL, labelBytes.length), labelBytes]);
  const bytesMax = PACKET_BYTES - SEAL_BYTES - labelHeader.length;

  return {
    packPacket: (messages, peerProtocol) => {
      const { bytes, count } = encodePacket(messages, { peerProtocol, bytesMax });
      return { packet: Buffer.concat([labelHeader, sealer.seal(bytes, labelBytes)]), count };
    },
    unpackPacket: (packet) => {
      const at = labelHeaderBytes(packet);
      if (!isOurs(packet, at, labelHeader)) return { fault: "label" };
      const plain = sealer.open(packet.subarray(at), labelBytes);
      return plain === undefined ? { fault: "sealed" } : decodePacket(plain);
    },
    packFrame: (message, side) => {
      const plain = encodeStream(message);
      const header = Buffer.alloc(FRAME_HEADER_BYTES);
      header[0] = MESSAGE_TYPE.ENCRYPTED;
      header.writeUInt32BE(plain.length + SEAL_BYTES, 1);
      const sealed = sealer.seal(plain, Buffer.concat([header, labelBytes]));
      // A connection is labelled once, by who dialled.
      return Buffer.concat([side === "request" ? labelHeader : new Uint8Array(), header, sealed]);
    },
    unpackFrame: (frame) => {
      const at = labelHeaderBytes(frame);
      // A reply has no label ahead; that it belongs to ours is proved by the seal.
      if (at !== 0 && !isOurs(frame, at, labelHeader)) return { fault: "label" };
      const header = frame.subarray(at, at + FRAME_HEADER_BYTES);
      const sealed = frame.subarray(at + FRAME_HEADER_BYTES);
      if (header.length < FRAME_HEADER_BYTES || header[0] !== MESSAGE_TYPE.ENCRYPTED) return { fault: "malformed" };
      if (Buffer.from(header).readUInt32BE(1) !== sealed.length) return { fault: "malformed" };
      if (sealed.length > SEALED_FRAME_BYTES_MAX) return { fault: "oversized" };
      const plain = sealer.open(sealed, Buffer.concat([header, labelBytes]));
      return plain === undefined ? { fault: "sealed" } : decodeStream(plain);
    },
  };
}

/** Whether the label ahead of the bytes, `length` with its header, is the one that is expected. */
function isOurs(bytes: Uint8Array, length: number, labelHeader: Uint8Array): boolean {
  return length === labelHeader.length && Buffer.compare(bytes.subarray(0, length), labelHeader) === 0;
}

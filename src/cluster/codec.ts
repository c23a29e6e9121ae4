/**
 * Messages of the membership protocol to bytes and back: wire.ts has their spelling, seal.ts hides and proves them. Transports
 * carry only what this makes.
 */
import type { PacketMessage, StreamMessage } from "./messages.ts";

/**
 * Why bytes are dropped: another key or none ("sealed"), another label, nothing that could be read, more than may be. It is
 * what `MembershipFigures.dropped` counts by.
 */
export type CodecFault = "sealed" | "label" | "malformed" | "oversized";

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

/** Numbers and names of the membership protocol's bytes (memberlist's, protocol 2 to 5), which never change their meaning. */

/** The first byte of a message. */
export const MESSAGE_TYPE = {
  PING: 0,
  INDIRECT_PING: 1,
  ACK: 2,
  SUSPECT: 3,
  ALIVE: 4,
  DEAD: 5,
  PUSH_PULL: 6,
  COMPOUND: 7,
  USER: 8,
  COMPRESSED: 9,
  /** Ahead of a sealed frame. */
  ENCRYPTED: 10,
  NACK: 11,
  CRC: 12,
  ERROR: 13,
  /** Ahead of a label. */
  LABEL: 244,
} as const;

/** Members of this protocol and later ones check a CRC; older ones do not know its type. */
export const CRC_PROTOCOL_MIN = 5;

/** A CRC and the type ahead of it. */
export const CRC_BYTES = 5;

/** The one algorithm of compressed messages: LZW. */
export const COMPRESSION_LZW = 0;

export type WireFault = "malformed" | "oversized";

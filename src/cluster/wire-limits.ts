/** Every limit of the membership protocol's bytes and sockets, named once. Sizes are bytes, memberlist's own where it has one. */

/** What a packet is filled up to: less than an Ethernet frame, with room for tunnels. */
export const PACKET_BYTES = 1_400;
/** The largest datagram there is (RFC 768). */
export const PACKET_BYTES_MAX = 65_535;
/** Of a message within a frame, as memberlist has it. */
export const FRAME_BYTES_MAX = 20 * 2 ** 20;
/** What compressed parts of one packet, or one frame, may come to. */
export const INFLATED_PACKET_BYTES_MAX = 65_536;
/**
 * Memberlist takes 40 MiB; all members that there may be are little more than 1 MiB, and decompressing goes on in one go, in which
 * nothing else has a turn.
 */
export const INFLATED_FRAME_BYTES_MAX = 4 * 2 ** 20;
/** Compressed parts of one packet: members compress a packet as a whole, if they do. */
export const COMPRESSED_PARTS_MAX = 8;
/** Parts within parts of a packet. */
export const PART_DEPTH_MAX = 8;
/** Parts of one compound: their count is one byte. */
export const COMPOUND_PARTS_MAX = 255;

/** Of a map within a map, and of an array. */
export const VALUE_DEPTH_MAX = 8;
/** Of keys that tell fields apart; a longer one is no field of ours. */
export const FIELD_NAME_BYTES_MAX = 64;
export const NODE_NAME_BYTES_MAX = 512;
export const META_BYTES_MAX = 512;
export const ERROR_TEXT_BYTES_MAX = 4_096;
export const LABEL_BYTES_MAX = 255;
/** Members in one push/pull: more than anybody remembers. */
export const NODES_MAX = 4_096;

/** Connections whose first byte has not come, and exchanges: of strangers, of members, and of one address. */
export const CONNECTIONS_MAX = 512;
export const MEMBER_CONNECTIONS_MAX = 256;
export const CONNECTIONS_PER_ADDRESS_MAX = 128;
/** Bytes of frames that have begun, over all exchanges; beyond it the largest ends. */
export const UNREAD_BYTES_MAX = 64 * 2 ** 20;
export const FIRST_BYTE_MS = 5_000;
/** Of an exchange that another member began. */
export const EXCHANGE_MS = 10_000;
export const RECEIVE_BUFFER_BYTES = 2 * 2 ** 20;
/** Packets that wait for the kernel; beyond it they are lost, as a full network would lose them. */
export const SEND_QUEUE_BYTES_MAX = 4 * 2 ** 20;

/** Every limit of serving zones to secondaries, named once. */
import { MESSAGE_BYTES_MAX } from "../dns/message.ts";

/**
 * Left free at the end of every message of a transfer for OPT and TSIG. A TSIG RR takes 377 bytes at most: a key's name of
 * 255, 10 up to its rdata, an algorithm's name of 26, a MAC of 64, and 22 of numbers (RFC 8945 section 4.2).
 */
export const TRANSFER_TAIL_BYTES = 512;
/** Of a message of a transfer without OPT and TSIG. */
export const TRANSFER_MESSAGE_BYTES = MESSAGE_BYTES_MAX - TRANSFER_TAIL_BYTES;

/** Transfers being sent at a time; further ones wait. */
export const TRANSFERS_MAX = 10;
/** Of those, and of those that wait, so many of one client: an IPv4 address or an IPv6 /64. What is left is for others. */
export const TRANSFERS_OF_CLIENT_MAX = 6;
export const TRANSFERS_WAITING_OF_CLIENT_MAX = 24;
/** Transfers that wait; further ones are told SERVFAIL, on which a secondary tries again by its SOA's timers. */
export const TRANSFERS_WAITING_MAX = 32;
/** A transfer that waited so long for its turn is told SERVFAIL too. */
export const TRANSFER_WAIT_MS = 10_000;
/** Of bytes that a client has not taken, before nothing more is handed to its connection. */
export const TRANSFER_UNTAKEN_BYTES = 262_144;
/** A client that takes nothing for so long is cut off. */
export const TRANSFER_STALL_MS = 30_000;
/** The longest that a transfer may take altogether. */
export const TRANSFER_MS = 600_000;

/** ALIAS targets asked for at a time by one transfer, and how long it waits for all of them. */
export const ALIASES_AT_ONCE = 50;
export const ALIASES_MS = 10_000;

/** A zone that has not been encoded within this time is given up; its secondary comes again. */
export const TRANSFER_ENCODE_MS = 120_000;
/** Zones that are asked for at a time: those whose client has gone meanwhile count until they come. */
export const TRANSFER_ENCODINGS_MAX = 64;

/** Updates that are being carried out, in all and of one client: an IPv4 address or an IPv6 /64. Further ones are told SERVFAIL. */
export const UPDATES_UNDER_WAY_MAX = 256;
export const UPDATES_OF_CLIENT_MAX = 64;
/** An update whose outcome has not come by then is told SERVFAIL: what became of it is not known. */
export const UPDATE_MS = 5_000;
/** Retransmissions of one update over UDP that wait for the same outcome; further ones hear nothing. */
export const UPDATE_JOINED_MAX = 8;

/** What a request for a zone (RFC 5936 section 2.1) asks, and the messages that answer it, made ready for its client. */
import { CLASS, FLAG, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { type Edns, writeEdns } from "../dns/edns.ts";
import { decodeMessage, encodeMessage, HEADER_BYTES } from "../dns/message.ts";
import { LOWER } from "../dns/name.ts";
import { finishWriter, openWriter } from "../dns/writer.ts";

export type TransferRequest = {
  readonly id: number;
  /** Lower-case wire name. */
  readonly zone: Uint8Array;
  /** The zone as the client spells it. */
  readonly question: Uint8Array;
  readonly flags: number;
  /** Of the answer; undefined where the client has none. */
  readonly edns: Edns | undefined;
};

export type TransferReading =
  | { readonly kind: "transfer"; readonly request: TransferRequest }
  /** To be answered with this RCODE. */
  | { readonly kind: "refused"; readonly rcode: number };

/** Reads a request without its TSIG. `udpSize` is what the answer's OPT says that this server takes. */
export function readTransferRequest(bytes: Uint8Array, udpSize: number): TransferReading {
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "error") return { kind: "refused", rcode: RCODE.FORMERR };
  const { message } = decoded;
  const [question, ...further] = message.questions;
  if (message.opcode !== OPCODE.QUERY || question === undefined || further.length > 0) return FORMERR;
  // The other sections should be empty (RFC 5936 section 2.1); as at the peers, what they have is passed over.
  if (question.type !== RRTYPE.AXFR) return FORMERR;
  if (question.class !== CLASS.IN) return { kind: "refused", rcode: RCODE.REFUSED };
  // RFC 6891 section 6.1.3.
  if (message.edns !== undefined && message.edns.version > 0) return { kind: "refused", rcode: RCODE.BADVERS };
  const edns = message.edns === undefined ? undefined : { ...message.edns, udpSize, options: [] };
  const zone = question.name.map((byte) => LOWER[byte]!);
  const flags = message.flags & (FLAG.RD | FLAG.CD);
  return { kind: "transfer", request: { id: message.id, zone, question: question.name, flags, edns } };
}

const FORMERR: TransferReading = { kind: "refused", rcode: RCODE.FORMERR };

/**
 * A message of `axfr-encode.ts` as this client gets it, unsigned: with its id, its flags, its spelling of the question and,
 * in the first one, OPT (RFC 5936 section 2.2.5).
 */
export function messageFor(request: TransferRequest, message: Uint8Array, isFirst: boolean): Uint8Array {
  const opt = isFirst && request.edns !== undefined ? optOf(request.edns) : new Uint8Array(0);
  const bytes = new Uint8Array(message.length + opt.length);
  bytes.set(message);
  bytes.set(opt, message.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, request.id);
  view.setUint16(2, view.getUint16(2) | request.flags);
  if (isFirst) bytes.set(request.question, HEADER_BYTES);
  if (opt.length > 0) view.setUint16(10, view.getUint16(10) + 1);
  return bytes;
}

/** The one message of a transfer that is not to be. */
export function transferError(request: TransferRequest, rcode: number): Uint8Array {
  const { id, question, flags, edns } = request;
  const none = { answers: [], authorities: [], additionals: [] };
  const questions = [{ name: question, type: RRTYPE.AXFR, class: CLASS.IN }];
  return encodeMessage({ id, flags: FLAG.QR | flags, opcode: OPCODE.QUERY, rcode, questions, edns, ...none }).bytes;
}

const OPT_BYTES_MAX = 64;

function optOf(edns: Edns): Uint8Array {
  const writer = openWriter(OPT_BYTES_MAX);
  writeEdns(writer, edns, RCODE.NOERROR);
  return finishWriter(writer);
}

/** The messages of NOTIFY (RFC 1996). */
import { CLASS, FLAG, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { decodeMessage, encodeMessage } from "../dns/message.ts";
import { namesEqual } from "../dns/name.ts";
import { type SignedRequest, signRequest, type TsigKey, verifyResponse } from "../dns/tsig.ts";

/** A zone's SOA as it is announced. */
export type NotifySoa = {
  /** Wire name of the zone. */
  readonly zone: Uint8Array;
  /** Seconds. */
  readonly ttl: number;
  readonly rdata: Uint8Array;
};

/** The MAC is empty where there is no key. */
export function notifyMessage(soa: NotifySoa, id: number, key: TsigKey | undefined, nowSeconds: number): SignedRequest {
  const { zone, ttl, rdata } = soa;
  const { bytes } = encodeMessage({
    id,
    flags: FLAG.AA,
    opcode: OPCODE.NOTIFY,
    rcode: RCODE.NOERROR,
    questions: [{ name: zone, type: RRTYPE.SOA, class: CLASS.IN }],
    // RFC 1996 section 3.7: a hint, by which a secondary that has this serial already can leave it at that.
    answers: [{ name: zone, type: RRTYPE.SOA, class: CLASS.IN, ttl, rdata }],
    authorities: [],
    additionals: [],
    edns: undefined,
  });
  return key === undefined ? { bytes, mac: new Uint8Array(0) } : signRequest(key, bytes, nowSeconds);
}

export type NotifyAnswer =
  | { readonly kind: "taken" }
  /** It says no, and will say so again. */
  | { readonly kind: "refused"; readonly rcode: number }
  /** It is busy, or the answer is nobody's word. */
  | { readonly kind: "ignored"; readonly reason: string };

/** What an answer with the right id from the right address comes to. Any bytes may be passed. */
export function readNotifyAnswer(
  bytes: Uint8Array,
  zone: Uint8Array,
  signed: { readonly key: TsigKey; readonly mac: Uint8Array } | undefined,
  nowSeconds: number,
): NotifyAnswer {
  if (signed !== undefined) {
    const { key, mac } = signed;
    const verified = verifyResponse(bytes, key, mac, nowSeconds);
    if (verified.kind === "failed") {
      const reason = verified.reason === "error" ? `TSIG error ${verified.error}` : `TSIG: ${verified.reason}`;
      return { kind: "ignored", reason };
    }
  }
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "error") return { kind: "ignored", reason: decoded.reason };
  const { message } = decoded;
  const [question] = message.questions;
  if ((message.flags & FLAG.QR) === 0 || message.opcode !== OPCODE.NOTIFY) return NO_ANSWER;
  if (question !== undefined && !namesEqual(question.name, zone)) return NO_ANSWER;
  if (message.rcode === RCODE.NOERROR) return { kind: "taken" };
  if (message.rcode === RCODE.SERVFAIL) return { kind: "ignored", reason: "SERVFAIL" };
  return { kind: "refused", rcode: message.rcode };
}

const NO_ANSWER: NotifyAnswer = { kind: "ignored", reason: "no answer to a NOTIFY" };

/**
 * Signatures of DNS messages with shared keys (RFC 8945): what the signature of a request comes to, how its answer is
 * signed, and how an answer to a request of ours is verified.
 */
import { FLAG, RCODE, RRTYPE } from "./codes.ts";
import { HEADER_BYTES, MESSAGE_BYTES_MAX } from "./message.ts";
import { namesEqual } from "./name.ts";
import {
  macMatches,
  type TsigAlgorithm,
  tsigAlgorithmName,
  tsigAlgorithmOf,
  tsigMac,
  tsigMacBytes,
} from "./tsig-algorithms.ts";
import {
  appendTsig,
  findTsig,
  type Outline,
  putUint16,
  TSIG_FIXED_BYTES,
  type TsigRecord,
  tsigTimers,
  tsigVariables,
  uint16At,
  uint48Bytes,
  withoutTsig,
} from "./tsig-record.ts";

export type TsigKey = {
  /** Lower-case wire name. */
  readonly name: Uint8Array;
  readonly algorithm: TsigAlgorithm;
  readonly secret: Uint8Array;
};

/** Numbers of the record's error field (RFC 8945 section 3). */
export const TSIG_ERROR = { NONE: 0, BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const;

/** Seconds that clocks may differ where we sign (RFC 8945 section 10). */
const TSIG_FUDGE_SECONDS = 300;

/** What the signature of a request came to. */
export type TsigRequest =
  | { readonly kind: "unsigned" }
  | {
      readonly kind: "verified";
      readonly key: TsigKey;
      /** For `signResponse`. */
      readonly mac: Uint8Array;
      /** The message without its signature, with the id that it came with. */
      readonly bytes: Uint8Array;
      /** The id that was signed: another one where a forwarder is between. */
      readonly originalId: number;
    }
  | TsigRefusal;

/** A request that must not be carried out; `refusalAnswer` is what its sender gets. */
export type TsigRefusal = {
  readonly kind: "refused";
  readonly rcode: typeof RCODE.FORMERR | typeof RCODE.NOTAUTH;
  /** Zero with FORMERR only. */
  readonly error: 0 | 16 | 17 | 18 | 22;
  /** The key that the request names; undefined: no such key, or FORMERR. */
  readonly key: TsigKey | undefined;
  /** Its record; undefined: FORMERR. */
  readonly record: TsigRecord | undefined;
  /** The message as it came, not a copy. */
  readonly bytes: Uint8Array;
  readonly outline: Outline;
};

/** Signs the messages of one answer, in the order in which they are sent. */
export type TsigSigner = {
  /** The message with its signature, `tsigBytes` longer. Throws RangeError where that is longer than a message may be. */
  readonly sign: (message: Uint8Array) => Uint8Array;
};

/** A request of ours, and the MAC that its answer is verified by. */
export type SignedRequest = { readonly bytes: Uint8Array; readonly mac: Uint8Array };

export type TsigResponse =
  /** `bytes` is the message without its signature; `mac` is what the next message of the same answer is verified by. */
  | { readonly kind: "verified"; readonly bytes: Uint8Array; readonly mac: Uint8Array }
  | {
      readonly kind: "failed";
      /** "error" is a TSIG error that the peer says, "signature" a MAC that is wrong, too short or missing. */
      readonly reason: "unsigned" | "malformed" | "key" | "signature" | "time" | "error";
      /** What the peer says in the record's error field. */
      readonly error: number;
      /** Whether the peer's signature is right, and so what it says in `error` is the peer's word. */
      readonly isAuthentic: boolean;
    };

/** The shortest MAC that is one (RFC 8945 section 5.2.2.1), beside half of the whole one. */
const MAC_BYTES_MIN = 10;
const NOTHING = new Uint8Array(0);
/** Opcode and RD, which an answer repeats. */
const REPEATED_FLAGS = 0x7900;
/** What fits into any path, as an answer that only refuses says it. */
const UDP_SIZE_BYTES = 1232;
const DNSSEC_OK = 0x8000;

/**
 * Reads a request's signature in the order of RFC 8945 section 5.2: form, key, MAC, time, length of the MAC. `findKey` is
 * asked with the key's lower-case wire name; `nowSeconds` counts from 1970. A MAC that was cut short is BADTRUNC even
 * where it is right: whoever knows the secret can send all of it. Any bytes may be passed, and nothing is thrown.
 */
export function readTsig(
  bytes: Uint8Array,
  findKey: (name: Uint8Array, algorithm: TsigAlgorithm) => TsigKey | undefined,
  nowSeconds: number,
): TsigRequest {
  const place = findTsig(bytes);
  if (place.kind === "none") return { kind: "unsigned" };
  const { outline } = place;
  if (place.kind === "malformed") return formErr(bytes, outline);
  const { at, record } = place;
  const key = keyOf(record, findKey);
  const refuse = (error: TsigRefusal["error"]): TsigRefusal => {
    return { kind: "refused", rcode: RCODE.NOTAUTH, error, key, record, bytes, outline };
  };
  if (key === undefined) return refuse(TSIG_ERROR.BADKEY);
  const wholeBytes = tsigMacBytes(key.algorithm);
  if (!isMacLength(record.mac.length, wholeBytes)) return formErr(bytes, outline);
  const message = withoutTsig(bytes, at, record.originalId);
  const mac = tsigMac(key.algorithm, key.secret, [message, tsigVariables(record)]);
  if (!macMatches(mac, record.mac)) return refuse(TSIG_ERROR.BADSIG);
  if (Math.abs(nowSeconds - record.timeSeconds) > record.fudgeSeconds) return refuse(TSIG_ERROR.BADTIME);
  if (record.mac.length < wholeBytes) return refuse(TSIG_ERROR.BADTRUNC);
  putUint16(message, 0, uint16At(bytes, 0));
  return { kind: "verified", key, mac: record.mac, bytes: message, originalId: record.originalId };
}

function keyOf(record: TsigRecord, findKey: Parameters<typeof readTsig>[1]): TsigKey | undefined {
  const algorithm = tsigAlgorithmOf(record.algorithm);
  const key = algorithm === undefined ? undefined : findKey(record.name, algorithm);
  // RFC 8945 section 5.2.1: a key is one only together with its algorithm.
  return key !== undefined && key.algorithm === algorithm && namesEqual(key.name, record.name) ? key : undefined;
}

function isMacLength(length: number, wholeBytes: number): boolean {
  return length <= wholeBytes && length >= Math.max(MAC_BYTES_MIN, wholeBytes / 2);
}

function formErr(bytes: Uint8Array, outline: Outline): TsigRefusal {
  return { kind: "refused", rcode: RCODE.FORMERR, error: 0, key: undefined, record: undefined, bytes, outline };
}

/**
 * The whole answer to a refused request (RFC 8945 section 5.3.2): BADKEY and BADSIG without a MAC, since nobody is known
 * to be there; BADTIME signed, with the client's time and ours beside it; BADTRUNC signed; FORMERR without any record.
 */
export function refusalAnswer(refusal: TsigRefusal, nowSeconds: number): Uint8Array {
  const { rcode, error, key, record } = refusal;
  const answer = bareAnswer(refusal.bytes, refusal.outline, rcode);
  if (record === undefined) return answer;
  const unsigned: TsigRecord = {
    ...record,
    // A client checks the time of any answer, and its own is the one that it finds right.
    fudgeSeconds: TSIG_FUDGE_SECONDS,
    mac: NOTHING,
    originalId: uint16At(answer, 0),
    error,
    otherData: error === TSIG_ERROR.BADTIME ? uint48Bytes(nowSeconds) : NOTHING,
  };
  const isSigned = error === TSIG_ERROR.BADTIME || error === TSIG_ERROR.BADTRUNC;
  if (key === undefined || !isSigned) return appendTsig(answer, unsigned);
  return appendTsig(answer, signed(key, [...macParts(record.mac), answer, tsigVariables(unsigned)], unsigned));
}

/** Header, question and OPT of an answer that has nothing else. */
function bareAnswer(bytes: Uint8Array, { questionEnd, optFlags }: Outline, rcode: number): Uint8Array {
  const end = Math.max(questionEnd, HEADER_BYTES);
  const answer = new Uint8Array(end + (optFlags === undefined ? 0 : 11));
  answer.set(bytes.subarray(0, end));
  putUint16(answer, 2, FLAG.QR | (uint16At(bytes, 2) & REPEATED_FLAGS) | rcode);
  putUint16(answer, 4, questionEnd === 0 ? 0 : 1);
  putUint16(answer, 6, 0);
  putUint16(answer, 8, 0);
  putUint16(answer, 10, optFlags === undefined ? 0 : 1);
  if (optFlags === undefined) return answer;
  putUint16(answer, end + 1, RRTYPE.OPT);
  putUint16(answer, end + 3, UDP_SIZE_BYTES);
  putUint16(answer, end + 7, optFlags & DNSSEC_OK);
  return answer;
}

/** Bytes that a signature with this key adds to a message. */
export function tsigBytes(key: TsigKey): number {
  return TSIG_FIXED_BYTES + key.name.length + tsigAlgorithmName(key.algorithm).length + tsigMacBytes(key.algorithm);
}

/**
 * A signer of the answer to a verified request: the first message by the request's MAC and all the variables, each further
 * one of a transfer by the MAC before it and the timers (RFC 8945 section 5.3.1). `nowSeconds` is asked for each message.
 */
export function signResponse(key: TsigKey, requestMac: Uint8Array, nowSeconds: () => number): TsigSigner {
  let priorMac = requestMac;
  let isFirst = true;
  const sign = (message: Uint8Array): Uint8Array => {
    const unsigned = unsignedRecord(key, message, nowSeconds());
    const variables = isFirst ? tsigVariables(unsigned) : tsigTimers(unsigned);
    const record = signed(key, [...macParts(priorMac), message, variables], unsigned);
    priorMac = record.mac;
    isFirst = false;
    return appendTsig(message, record);
  };
  return { sign };
}

/** A request of ours, signed; `mac` is for `verifyResponse`. Throws RangeError as `TsigSigner` does. */
export function signRequest(key: TsigKey, message: Uint8Array, nowSeconds: number): SignedRequest {
  const unsigned = unsignedRecord(key, message, nowSeconds);
  const record = signed(key, [message, tsigVariables(unsigned)], unsigned);
  return { bytes: appendTsig(message, record), mac: record.mac };
}

/**
 * Verifies an answer to a request that was signed with `key` and had the MAC `requestMac`. With `isFurther` it is a
 * message of the same answer behind another, whose MAC `requestMac` then is. Any bytes may be passed.
 */
export function verifyResponse(
  bytes: Uint8Array,
  key: TsigKey,
  requestMac: Uint8Array,
  nowSeconds: number,
  isFurther = false,
): TsigResponse {
  const place = findTsig(bytes);
  if (place.kind === "none") return failed("unsigned");
  if (place.kind === "malformed") return failed("malformed");
  const { at, record } = place;
  if (keyOf(record, () => key) === undefined) return failed("key", record.error);
  const isBare = record.error === TSIG_ERROR.BADKEY || record.error === TSIG_ERROR.BADSIG;
  if (isBare && record.mac.length === 0) return failed("error", record.error);
  const message = withoutTsig(bytes, at, record.originalId);
  const variables = isFurther ? tsigTimers(record) : tsigVariables(record);
  const mac = tsigMac(key.algorithm, key.secret, [...macParts(requestMac), message, variables]);
  if (record.mac.length !== mac.length || !macMatches(mac, record.mac)) return failed("signature", record.error);
  if (record.error !== TSIG_ERROR.NONE) return failed("error", record.error, true);
  if (Math.abs(nowSeconds - record.timeSeconds) > record.fudgeSeconds) return failed("time", 0, true);
  putUint16(message, 0, uint16At(bytes, 0));
  return { kind: "verified", bytes: message, mac: record.mac };
}

function failed(
  reason: Extract<TsigResponse, { kind: "failed" }>["reason"],
  error = 0,
  isAuthentic = false,
): TsigResponse {
  return { kind: "failed", reason, error, isAuthentic };
}

function unsignedRecord(key: TsigKey, message: Uint8Array, timeSeconds: number): TsigRecord {
  if (message.length + tsigBytes(key) > MESSAGE_BYTES_MAX) throw new RangeError("no room for a signature");
  return {
    name: key.name,
    algorithm: tsigAlgorithmName(key.algorithm),
    timeSeconds,
    fudgeSeconds: TSIG_FUDGE_SECONDS,
    mac: NOTHING,
    originalId: uint16At(message, 0),
    error: TSIG_ERROR.NONE,
    otherData: NOTHING,
  };
}

function signed(key: TsigKey, parts: readonly Uint8Array[], record: TsigRecord): TsigRecord {
  return { ...record, mac: tsigMac(key.algorithm, key.secret, parts) };
}

/** A MAC that is part of another is preceded by its length (RFC 8945 section 5.3). */
function macParts(mac: Uint8Array): readonly Uint8Array[] {
  return [Uint8Array.of(mac.length >> 8, mac.length & 0xff), mac];
}

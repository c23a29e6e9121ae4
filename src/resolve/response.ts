/**
 * What an upstream's message says to a question: the chain from the question on, with what else belongs to it, and nothing
 * that it does not belong to. Pure, and ready for any message that can be decoded.
 */
import { CLASS, EDE, FLAG, RCODE, RRTYPE } from "../dns/codes.ts";
import { extendedErrorsOf } from "../dns/edns.ts";
import type { Message, ResourceRecord } from "../dns/message.ts";
import { isSubdomain, nameLengthAt, namesEqual } from "../dns/name.ts";
import { CACHED_CHAIN_MAX, QUESTION_FLAG } from "../image/cache.ts";
import { type Chain, followChain, isWildcard } from "./chain.ts";
import { isPrivateAddress } from "./private-address.ts";
import { nameText } from "./resolver-names.ts";

export type ReadRules = {
  /** Lower-case wire name. */
  readonly name: Uint8Array;
  readonly type: number;
  /** Bits of QUESTION_FLAG. */
  readonly flags: number;
  /** The server is believed about names at and below it. */
  readonly domain: Uint8Array;
  /** The server was asked to recurse, so that it may say what it has from others, and never refers. */
  readonly isRecursive: boolean;
  /** True where somebody else is to be asked for this target of a chain. */
  readonly isElsewhere: (target: Uint8Array) => boolean;
  /** What does not belong to the chain is left out; else the answer section is passed on as it is. */
  readonly isScrubbing: boolean;
  /** Names whose addresses may be private; undefined: all. */
  readonly rebindingExceptions: readonly Uint8Array[] | undefined;
  /** Seconds. */
  readonly minTtl: number;
  readonly maxTtl: number;
  readonly maxNegativeTtl: number;
};

export type Answer = {
  readonly kind: "answer";
  readonly rcode: number;
  /** -1 for none. */
  readonly extendedError: number;
  /** With the TTLs that are to be told. */
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  /** The CNAMEs among `answers` that were followed, in their order. */
  readonly followed: readonly ResourceRecord[];
  readonly isOpen: boolean;
  /** The smallest TTL. 0 where nothing says how long it holds. */
  readonly ttlSeconds: number;
  /** Records of the answer section left out because nobody asked for them, and private addresses left out. */
  readonly scrubbed: number;
  readonly rebinding: number;
};

export type Reading =
  | Answer
  /** The servers of a zone cut between `domain` and the name. `ttlSeconds` as told. */
  | {
      readonly kind: "referral";
      readonly cut: Uint8Array;
      readonly servers: readonly Uint8Array[];
      readonly ttlSeconds: number;
    }
  /** Nothing of use. `extendedError` is of EDE. */
  | { readonly kind: "failure"; readonly extendedError: number };

const RRSIG = 46;
const NSEC = 47;
const NSEC3 = 50;
const SOA_MINIMUM_BYTES = 4;
/** RFC 4034 section 3.1. */
const RRSIG_SIGNER_AT = 18;
/** EDE codes from here on are for private use (RFC 8914 section 5.2): nobody else knows what they say. */
const PRIVATE_EXTENDED_ERROR = 49_152;

/** What the message says to the question of `rules`; it has been checked that it answers it. */
export function readResponse(message: Message, rules: ReadRules): Reading {
  if (message.rcode !== RCODE.NOERROR && message.rcode !== RCODE.NXDOMAIN) return failure(message);
  const wantsDnssec = (rules.flags & QUESTION_FLAG.DNSSEC_OK) !== 0;
  const chain = followChain(message.answers, rules);
  if (chain.end === "endless") return { kind: "failure", extendedError: EDE.OTHER };
  if (chain.end === "answered" || chain.end === "elsewhere") {
    const proofs = wantsDnssec ? wildcardProofs(message.authorities, chain) : [];
    return finish(message, rules, chain, RCODE.NOERROR, proofs, chain.end === "elsewhere");
  }
  const soa = findSoa(message.authorities, rules, chain.last);
  if (soa === undefined) {
    const isDenial = message.rcode === RCODE.NXDOMAIN && (rules.isRecursive || hasAuthority(message));
    if (isDenial) return finish(message, rules, chain, RCODE.NXDOMAIN, [], false);
    if (message.rcode === RCODE.NXDOMAIN) return failure(message);
    // The rest of the chain was left out: whoever it concerns asks for the target itself.
    if (chain.followed.length > 0) return finish(message, rules, chain, RCODE.NOERROR, [], true);
    const referral = readReferral(message, rules);
    if (referral !== undefined)
      return rules.isRecursive ? { kind: "failure", extendedError: EDE.NOT_AUTHORITATIVE } : referral;
    const isForOthers = message.answers.length > 0 && rules.isScrubbing;
    if (isForOthers || !(rules.isRecursive || hasAuthority(message))) return failure(message);
    return finish(message, rules, chain, RCODE.NOERROR, [], false);
  }
  if (!rules.isRecursive && !hasAuthority(message)) return failure(message);
  const proofs = wantsDnssec ? negativeProofs(message.authorities, soa) : [];
  return finish(message, rules, chain, message.rcode, [negativeSoa(soa, rules), ...proofs], false);
}

/** Whether another server had better be asked; `readResponse` is not run for what begins with the question. */
export function isLame(message: Message, rules: ReadRules): boolean {
  const [first] = message.answers;
  if (first !== undefined && namesEqual(first.name, rules.name)) return false;
  return readResponse(message, rules).kind === "failure";
}

function failure(message: Message): Reading {
  const [told] = extendedErrorsOf(message.edns);
  const isKnown = told !== undefined && told.code < PRIVATE_EXTENDED_ERROR;
  return { kind: "failure", extendedError: isKnown ? told.code : EDE.NO_REACHABLE_AUTHORITY };
}

function hasAuthority(message: Message): boolean {
  return (message.flags & FLAG.AA) !== 0;
}

function finish(
  message: Message,
  rules: ReadRules,
  chain: Chain,
  rcode: number,
  authorities: readonly ResourceRecord[],
  isOpen: boolean,
): Answer {
  const rest = rules.isScrubbing || isOpen ? [] : restOf(message.answers, chain);
  const clamp = (record: ResourceRecord): ResourceRecord =>
    withTtl(record, Math.min(Math.max(record.ttl, rules.minTtl), rules.maxTtl));
  const found = equalTtls([...chain.records, ...rest]).map(clamp);
  const isRebinding = rebindingOf(rules);
  const told = found.filter((record) => !isRebinding(record));
  const kept = told.length === found.length ? told : withoutLooseSignatures(told);
  const isBlocked = told.length < found.length && !told.some(({ type }) => type === RRTYPE.A || type === RRTYPE.AAAA);
  const negative = isNegative(authorities);
  const proofs = equalTtls(authorities).map((record) => (negative ? record : clamp(record)));
  const all = [...found, ...proofs];
  // A negative answer without SOA says nothing of how long it holds (RFC 2308 section 5).
  const isLasting = all.length > 0 && (chain.end !== "unfinished" || isOpen || negative);
  const followed = new Set(chain.followed.map(({ rdata }) => rdata));
  return {
    kind: "answer",
    rcode,
    extendedError: isBlocked ? EDE.BLOCKED : -1,
    answers: kept,
    authorities: proofs,
    followed: kept.filter(({ type, rdata }) => type === RRTYPE.CNAME && followed.has(rdata)),
    isOpen,
    ttlSeconds: isLasting ? all.reduce((least, { ttl }) => Math.min(least, ttl), rules.maxTtl) : 0,
    scrubbed: rules.isScrubbing
      ? message.answers.reduce((sum, record) => sum + (chain.seen.has(record) ? 0 : 1), 0)
      : 0,
    rebinding: found.length - told.length,
  };
}

function withTtl(record: ResourceRecord, ttl: number): ResourceRecord {
  return ttl === record.ttl ? record : { ...record, ttl };
}

/** Every RR with the smallest TTL of its RRset (RFC 2181 section 5.2), which its signatures share. */
function equalTtls(records: readonly ResourceRecord[]): readonly ResourceRecord[] {
  if (records.length < 2) return records;
  const keys = records.map((record) => `${setType(record)} ${nameText(record.name)}`);
  const least = new Map<string, number>();
  for (const [index, { ttl }] of records.entries()) {
    const key = keys[index]!;
    least.set(key, Math.min(least.get(key) ?? ttl, ttl));
  }
  return records.map((record, index) => withTtl(record, least.get(keys[index]!)!));
}

function setType({ type, rdata }: ResourceRecord): number {
  return type === RRSIG && rdata.length >= 2 ? (rdata[0]! << 8) | rdata[1]! : type;
}

/** What else the answer section has, for whoever wants all of it. */
function restOf(answers: readonly ResourceRecord[], chain: Chain): readonly ResourceRecord[] {
  return answers.filter((record) => record.class === CLASS.IN && record.type !== RRTYPE.OPT && !chain.seen.has(record));
}

/** Finds what is not told. Whoever sends thousands of addresses does not make us go through a thousand exceptions for each. */
function rebindingOf({ name, rebindingExceptions }: ReadRules): (record: ResourceRecord) => boolean {
  if (rebindingExceptions === undefined) return () => false;
  let exceptions: ReadonlySet<string> | undefined;
  let lengths: ReadonlySet<number> = new Set();
  const known = new Map<string, boolean>();
  const isBelowOne = (owner: Uint8Array): boolean => {
    const text = nameText(owner);
    const before = known.get(text);
    if (before !== undefined) return before;
    if (exceptions === undefined) {
      exceptions = new Set(rebindingExceptions.map((exception) => nameText(exception)));
      lengths = new Set(rebindingExceptions.map(({ length }) => length));
    }
    let isBelow = false;
    for (let at = 0; at < owner.length && !isBelow; at += owner[at]! + 1)
      isBelow = lengths.has(owner.length - at) && exceptions.has(text.slice(at));
    known.set(text, isBelow);
    return isBelow;
  };
  return ({ name: owner, type, rdata }) =>
    (type === RRTYPE.A || type === RRTYPE.AAAA) && isPrivateAddress(rdata) && !isBelowOne(name) && !isBelowOne(owner);
}

/** Signatures of RRsets of which something was taken out prove nothing any more. */
function withoutLooseSignatures(records: readonly ResourceRecord[]): readonly ResourceRecord[] {
  return records.filter(
    (record) => record.type !== RRSIG || (setType(record) !== RRTYPE.A && setType(record) !== RRTYPE.AAAA),
  );
}

/** The SOA of a negative answer: of a zone that the name is in (RFC 2308 section 2). */
function findSoa(
  authorities: readonly ResourceRecord[],
  rules: ReadRules,
  name: Uint8Array,
): ResourceRecord | undefined {
  return authorities.find(
    (record) =>
      record.type === RRTYPE.SOA &&
      record.class === CLASS.IN &&
      isSubdomain(name, record.name) &&
      // A forwarder may be responsible for a part of the zone that it tells of.
      (rules.isRecursive || isSubdomain(record.name, rules.domain)),
  );
}

/** RFC 2308 section 5: the smaller of the SOA's TTL and its minimum. */
function negativeSoa(soa: ResourceRecord, rules: ReadRules): ResourceRecord {
  const { rdata } = soa;
  const view = new DataView(rdata.buffer, rdata.byteOffset, rdata.length);
  const minimum = view.getUint32(rdata.length - SOA_MINIMUM_BYTES);
  const lasting = Math.max(Math.min(soa.ttl, minimum), rules.minTtl);
  return withTtl(soa, Math.min(lasting, rules.maxNegativeTtl, rules.maxTtl));
}

function isNegative(authorities: readonly ResourceRecord[]): boolean {
  return authorities[0]?.type === RRTYPE.SOA;
}

function isProof(record: ResourceRecord): boolean {
  const type = setType(record);
  return record.class === CLASS.IN && (type === NSEC || type === NSEC3);
}

/** The proofs of a negative answer, which hold no longer than its SOA, and the SOA's signatures. */
function negativeProofs(authorities: readonly ResourceRecord[], soa: ResourceRecord): readonly ResourceRecord[] {
  return authorities.filter(
    (record) =>
      (isProof(record) && isSubdomain(record.name, soa.name)) ||
      (record.type === RRSIG &&
        record.class === CLASS.IN &&
        setType(record) === RRTYPE.SOA &&
        namesEqual(record.name, soa.name)),
  );
}

/** What shows that a wildcard had to answer (RFC 4035 section 3.1.3.3), of the zones that signed what it made. */
function wildcardProofs(authorities: readonly ResourceRecord[], chain: Chain): readonly ResourceRecord[] {
  const signers = new Map<string, Uint8Array>();
  for (const { name, rdata } of chain.records.filter(isWildcard)) {
    const length = nameLengthAt(rdata, RRSIG_SIGNER_AT, rdata.length);
    if (length < 0 || signers.size > CACHED_CHAIN_MAX) continue;
    const signer = rdata.subarray(RRSIG_SIGNER_AT, RRSIG_SIGNER_AT + length);
    // Nobody else signs it, and an honest chain has no more of them than links: what is made up must not multiply.
    if (isSubdomain(name, signer)) signers.set(nameText(signer), signer);
  }
  if (signers.size === 0) return [];
  const zones = [...signers.values()];
  return authorities.filter((record) => isProof(record) && zones.some((zone) => isSubdomain(record.name, zone)));
}

function readReferral(message: Message, rules: ReadRules): Reading | undefined {
  if (hasAuthority(message) || message.rcode !== RCODE.NOERROR) return undefined;
  const first = message.authorities.find(
    (record) => record.type === RRTYPE.NS && record.class === CLASS.IN && isSubdomain(rules.name, record.name),
  );
  if (first === undefined) return undefined;
  // A cut at the server's own zone or above it leads away from the answer.
  const isBelow = first.name.length > rules.domain.length && isSubdomain(first.name, rules.domain);
  if (!isBelow && !rules.isRecursive) return undefined;
  const set = message.authorities.filter(
    (record) => record.type === RRTYPE.NS && record.class === CLASS.IN && namesEqual(record.name, first.name),
  );
  const ttlSeconds = set.reduce((least, { ttl }) => Math.min(least, ttl), rules.maxTtl);
  return { kind: "referral", cut: first.name, servers: set.map(({ rdata }) => rdata), ttlSeconds };
}

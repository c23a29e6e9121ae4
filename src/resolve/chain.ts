/** The chain of an answer section: from the question by CNAME and DNAME to what it asks for, in any order of the records. */
import { CLASS, RRTYPE } from "../dns/codes.ts";
import type { ResourceRecord } from "../dns/message.ts";
import { isSubdomain, labelCount, NAME_BYTES_MAX, namesEqual } from "../dns/name.ts";
import { CACHED_CHAIN_MAX, QUESTION_FLAG } from "../image/cache.ts";
import { foldName } from "./resolver-names.ts";

export type ChainRules = {
  /** Lower-case wire name. */
  readonly name: Uint8Array;
  readonly type: number;
  readonly flags: number;
  /** The chain ends at the first target outside of it. */
  readonly domain: Uint8Array;
  readonly isElsewhere: (target: Uint8Array) => boolean;
};

export type Chain = {
  /** In the order of the chain. CNAMEs that DNAMEs stand for are made here (RFC 6672 section 3.1). */
  readonly records: readonly ResourceRecord[];
  /** The CNAMEs that were followed. */
  readonly followed: readonly ResourceRecord[];
  /** What of the section stands in `records`, or says the same. */
  readonly seen: ReadonlySet<ResourceRecord>;
  /** The name at which it ends; lower case. */
  readonly last: Uint8Array;
  /** `unfinished`: nothing is there for `last`. `endless`: a loop, too long, or a name that cannot be. */
  readonly end: "answered" | "elsewhere" | "unfinished" | "endless";
};

type Followed = {
  readonly records: ResourceRecord[];
  readonly followed: ResourceRecord[];
  readonly seen: Set<ResourceRecord>;
};

const RRSIG = 46;
const NSEC = 47;
const NSEC3 = 50;

/** Follows the chain as far as the section and the rules go. */
export function followChain(section: readonly ResourceRecord[], rules: ChainRules): Chain {
  const state: Followed = { records: [], followed: [], seen: new Set() };
  const wantsCname = rules.type === RRTYPE.CNAME || rules.type === RRTYPE.ANY;
  let last = rules.name;
  const end = (how: Chain["end"]): Chain => ({ ...state, last, end: how });
  for (;;) {
    // The CNAME that a DNAME stands for is what was asked for, and the DNAME is told with it (RFC 6672 section 3.1).
    const made = wantsCname ? takeDname(state, section, last, rules) : undefined;
    if (made === undefined && takeAsked(state, section, last, rules)) return end("answered");
    const cname = made ?? takeDname(state, section, last, rules) ?? takeCname(state, section, last, rules);
    if (cname === undefined) return end("unfinished");
    if (cname === TOO_LONG) return end("endless");
    if (wantsCname) return end("answered");
    state.followed.push(cname);
    // A loop has no end either.
    if (state.followed.length > CACHED_CHAIN_MAX) return end("endless");
    last = foldName(cname.rdata);
    if (!isSubdomain(last, rules.domain) || rules.isElsewhere(last)) return end("elsewhere");
  }
}

/** True for a signature that tells that a wildcard made its RRset (RFC 4034 section 3.1.3). */
export function isWildcard({ name, type, rdata }: ResourceRecord): boolean {
  if (type !== RRSIG || rdata.length < 4) return false;
  const isAsterisk = name[0] === 1 && name[1] === 0x2a;
  return rdata[3]! < labelCount(name) - (isAsterisk ? 1 : 0);
}

/** What a DNAME gives where the name that it stands for is longer than names can be. */
const TOO_LONG: ResourceRecord = { name: Uint8Array.of(0), type: 0, class: 0, ttl: 0, rdata: Uint8Array.of(0) };

function isAt(record: ResourceRecord, name: Uint8Array): boolean {
  return record.class === CLASS.IN && namesEqual(record.name, name);
}

/** Takes the RRset of the type asked for; of ANY, all that is at the name. */
function takeAsked(state: Followed, section: readonly ResourceRecord[], name: Uint8Array, rules: ChainRules): boolean {
  const wantsDnssec = (rules.flags & QUESTION_FLAG.DNSSEC_OK) !== 0;
  const isAny = rules.type === RRTYPE.ANY;
  const isAsked = ({ type }: ResourceRecord): boolean => (isAny ? isPlain(type, wantsDnssec) : type === rules.type);
  const found = section.filter((record) => isAsked(record) && isAt(record, name));
  if (found.length === 0) return false;
  takeSet(state, found);
  if (!isAny && rules.type !== RRSIG) takeSignatures(state, section, name, rules.type, wantsDnssec);
  return true;
}

function isPlain(type: number, wantsDnssec: boolean): boolean {
  if (type === 0 || type === RRTYPE.OPT || (type >= 128 && type <= 255)) return false;
  return wantsDnssec || (type !== RRSIG && type !== NSEC && type !== NSEC3);
}

function takeSignatures(
  state: Followed,
  section: readonly ResourceRecord[],
  name: Uint8Array,
  covered: number,
  wantsDnssec: boolean,
): void {
  const signatures = section.filter(
    (record) =>
      record.type === RRSIG &&
      record.rdata.length > 2 &&
      ((record.rdata[0]! << 8) | record.rdata[1]!) === covered &&
      isAt(record, name),
  );
  // Nobody who did not ask for them gets them (RFC 3225 section 3), and the upstream is not to blame.
  if (wantsDnssec) takeSet(state, signatures);
  else for (const record of signatures) state.seen.add(record);
}

/** Takes the RRs, each once (RFC 2181 section 5). */
function takeSet(state: Followed, found: readonly ResourceRecord[]): void {
  const texts = new Set<string>();
  for (const record of found) {
    state.seen.add(record);
    if (found.length > 1) {
      const text = `${record.type} ${Buffer.from(record.rdata).toString("latin1")}`;
      if (texts.has(text)) continue;
      texts.add(text);
    }
    state.records.push(record);
  }
}

/** Takes the CNAME at the name: one, since there may not be more (RFC 2181 section 10.1). */
function takeCname(
  state: Followed,
  section: readonly ResourceRecord[],
  name: Uint8Array,
  rules: ChainRules,
): ResourceRecord | undefined {
  const cname = section.find((record) => record.type === RRTYPE.CNAME && isAt(record, name));
  if (cname === undefined) return undefined;
  takeSet(state, [cname]);
  takeSignatures(state, section, name, RRTYPE.CNAME, (rules.flags & QUESTION_FLAG.DNSSEC_OK) !== 0);
  return cname;
}

/** Takes the DNAME above the name and makes the CNAME that it stands for; the upstream's own CNAME is not needed. */
function takeDname(
  state: Followed,
  section: readonly ResourceRecord[],
  name: Uint8Array,
  rules: ChainRules,
): ResourceRecord | undefined {
  const dname = section.find(
    (record) =>
      record.type === RRTYPE.DNAME &&
      record.class === CLASS.IN &&
      record.name.length < name.length &&
      isSubdomain(name, record.name) &&
      isSubdomain(record.name, rules.domain),
  );
  if (dname === undefined) return undefined;
  const prefix = name.length - dname.name.length;
  if (prefix + dname.rdata.length > NAME_BYTES_MAX) return TOO_LONG;
  const target = new Uint8Array(prefix + dname.rdata.length);
  target.set(name.subarray(0, prefix));
  target.set(dname.rdata, prefix);
  // A second name below the same DNAME has the DNAME in the answer already.
  if (!state.seen.has(dname)) {
    takeSet(state, [dname]);
    takeSignatures(state, section, dname.name, RRTYPE.DNAME, (rules.flags & QUESTION_FLAG.DNSSEC_OK) !== 0);
  }
  for (const record of section) if (record.type === RRTYPE.CNAME && isAt(record, name)) state.seen.add(record);
  const cname = { name, type: RRTYPE.CNAME, class: CLASS.IN, ttl: dname.ttl, rdata: target };
  state.records.push(cname);
  return cname;
}

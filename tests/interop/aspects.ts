import { type DecodedRecord, decodeMessage } from "../support/dns-message.ts";

/**
 * What of a response is compared, each as one text. The order of records does not count, nor the case of owners.
 * `verdict` joins what only makes sense together: a server that takes one peer's rcode and another's answer is wrong.
 */
export type Aspects = {
  /** Rcode, AA and the answer section. */
  readonly verdict: string;
  readonly truncated: string;
  /** RD, RA, AD, CD, Z, QR and the opcode. */
  readonly bits: string;
  readonly question: string;
  readonly authority: string;
  readonly additional: string;
  readonly edns: string;
};

export type AspectName = keyof Aspects;

export const ASPECTS: readonly AspectName[] = [
  "verdict",
  "truncated",
  "bits",
  "question",
  "authority",
  "additional",
  "edns",
];

const AUTHORITATIVE = 0x0400;
const TRUNCATED = 0x0200;
const BITS: readonly (readonly [string, number])[] = [
  ["QR", 0x8000],
  ["RD", 0x0100],
  ["RA", 0x0080],
  ["Z", 0x0040],
  ["AD", 0x0020],
  ["CD", 0x0010],
];

export const SILENCE = "(silence)";
/** Stands for a section of a truncated response: what fits is the server's choice (RFC 2181 section 9). */
const NOT_COMPARED = "(truncated)";

function sectionText(records: readonly DecodedRecord[]): string {
  const lines = records.map(
    ({ owner, ttl, class: number, type, rdata }) => `${owner.toLowerCase()} ${ttl} CLASS${number} TYPE${type} ${rdata}`,
  );
  return lines.sort().join("\n");
}

/** The texts of a response, or of silence where there is none. A response that cannot be decoded throws. */
export function aspectsOf(response: Uint8Array | undefined): Aspects {
  if (response === undefined) {
    const [verdict, none] = [SILENCE, SILENCE];
    return { verdict, truncated: none, bits: none, question: none, authority: none, additional: none, edns: none };
  }
  const { flags, rcode, edns, ...message } = decodeMessage(response);
  const truncated = (flags & TRUNCATED) !== 0;
  const section = (records: readonly DecodedRecord[]) => (truncated ? NOT_COMPARED : sectionText(records));
  const bits = BITS.filter(([, bit]) => (flags & bit) !== 0).map(([name]) => name);
  return {
    verdict: `rcode ${rcode}${(flags & AUTHORITATIVE) !== 0 ? " AA" : ""}\n${section(message.answer)}`,
    truncated: truncated ? "TC" : "",
    bits: `${bits.join(" ")} opcode ${(flags >> 11) & 15}`,
    question: message.questions.map(({ name, type, class: number }) => `${name} ${type} ${number}`).join("\n"),
    authority: section(message.authority),
    additional: section(message.additional),
    edns: edns === undefined ? "none" : `version ${edns.version}${edns.dnssecOk ? " DO" : ""}`,
  };
}

/** One event as a line of JSON: keys in a fixed order, and nothing of what the client chose unescaped. */
import { ipToText } from "../base/ip.ts";
import { CLASS, FLAG, RCODE } from "../dns/codes.ts";
import { nameLengthAt, nameToText } from "../dns/name.ts";
import { typeToText } from "../dns/type-names.ts";
import { TRANSPORTS } from "../image/counters.ts";
import { EVENT, type EventRing, SOURCE, TRAIT } from "../image/events.ts";

const HEADER_BYTES = 12;

const FLAG_NAMES = [
  ["aa", FLAG.AA],
  ["tc", FLAG.TC],
  ["rd", FLAG.RD],
  ["ra", FLAG.RA],
  ["ad", FLAG.AD],
  ["cd", FLAG.CD],
] as const;

const SOURCE_NAMES = [
  ["zone", SOURCE.ZONE],
  ["override", SOURCE.OVERRIDE],
  ["cache", SOURCE.CACHE],
  ["stale", SOURCE.STALE],
  ["forwarded", SOURCE.FORWARDED],
  ["blocked", SOURCE.BLOCKED],
  ["refused", SOURCE.REFUSED],
  ["server", SOURCE.SERVER],
] as const;

const RCODE_TEXT = new Map<number, string>(Object.entries(RCODE).map(([name, code]) => [code, name]));
const CLASS_TEXT = new Map<number, string>(Object.entries(CLASS).map(([name, code]) => [code, name]));

/** The line of the event at `at`, without its end. Times are of the answer; `duration_us` is from taking the query to it. */
export function eventLine({ data, bytes }: EventRing, at: number, nodeId: string): string {
  const flags = data.getUint16(at + EVENT.FLAGS, true);
  const traits = bytes[at + EVENT.TRAITS]!;
  const sources = bytes[at + EVENT.SOURCES]!;
  const rcode = data.getUint16(at + EVENT.RCODE, true);
  const extendedError = data.getUint16(at + EVENT.EXTENDED_ERROR, true);
  const names = FLAG_NAMES.filter(([, bit]) => (flags & bit) !== 0).map(([name]) => name);
  const hasQuestion = (traits & TRAIT.QUESTION) !== 0;
  const asked = data.getUint16(at + EVENT.CLASS, true);
  return JSON.stringify({
    time: new Date(data.getFloat64(at + EVENT.TIME, true)).toISOString(),
    node_id: nodeId,
    client: ipToText(bytes, at + EVENT.ADDRESS, bytes[at + EVENT.ADDRESS_BYTES]!),
    port: data.getUint16(at + EVENT.PORT, true),
    transport: TRANSPORTS[bytes[at + EVENT.TRANSPORT]!],
    name: hasQuestion ? nameOf(bytes, data, at) : null,
    type: hasQuestion ? typeToText(data.getUint16(at + EVENT.TYPE, true)) : null,
    class: hasQuestion ? (CLASS_TEXT.get(asked) ?? `CLASS${asked}`) : null,
    rcode: RCODE_TEXT.get(rcode) ?? `RCODE${rcode}`,
    flags: (traits & TRAIT.DNSSEC_OK) === 0 ? names : [...names, "do"],
    answers: data.getUint16(at + EVENT.ANSWERS, true),
    bytes: data.getUint16(at + EVENT.ANSWER_BYTES, true),
    answered_by: SOURCE_NAMES.filter(([, bit]) => (sources & bit) !== 0).map(([name]) => name),
    extended_error: extendedError === 0 ? null : extendedError - 1,
    edns_bytes: (traits & TRAIT.EDNS) === 0 ? null : data.getUint16(at + EVENT.EDNS_BYTES, true),
    duration_us: data.getUint32(at + EVENT.MICROS, true),
  });
}

/** The name as it was asked for, absolute. */
function nameOf(bytes: Uint8Array, data: DataView, at: number): string | null {
  const from = at + EVENT.MESSAGE + HEADER_BYTES;
  const end = at + EVENT.MESSAGE + data.getUint16(at + EVENT.MESSAGE_BYTES, true);
  return nameLengthAt(bytes, from, end) < 0 ? null : nameToText(bytes, from);
}

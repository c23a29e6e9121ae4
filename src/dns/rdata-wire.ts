/**
 * Rdata inside messages, where names may be compressed. Types made before RFC 3597 may hold compressed names when they
 * are read (its section 4); names are compressed when written in the types of RFC 1035 only. All else is opaque bytes.
 */

import { CLASS, RRTYPE } from "./codes.ts";
import { nameLengthAt } from "./name.ts";
import { checkRdata, rdataTypeOf } from "./rdata.ts";
import { failReader, type Reader, readBytes, readName, readUint8 } from "./reader.ts";
import { type Writer, writeBytes, writeCompressedName } from "./writer.ts";

/** Parts of rdata in order: bytes of a fixed number, a name, a character-string. Bytes behind the last part follow as they are. */
type RdataLayout = readonly (number | "name" | "string")[];

const ONE_NAME: RdataLayout = ["name"];
const TWO_NAMES: RdataLayout = ["name", "name"];
const NUMBER_AND_NAME: RdataLayout = [2, "name"];

/** The numbers without a constant: MB MD MF MG MR; MINFO RP; AFSDB RT KX; PX; NXT; SIG; NAPTR. */
const LAYOUTS: ReadonlyMap<number, RdataLayout> = new Map<number, RdataLayout>([
  [RRTYPE.NS, ONE_NAME],
  [RRTYPE.CNAME, ONE_NAME],
  [RRTYPE.PTR, ONE_NAME],
  [RRTYPE.DNAME, ONE_NAME],
  [RRTYPE.SOA, ["name", "name", 20]],
  [RRTYPE.MX, NUMBER_AND_NAME],
  [RRTYPE.SRV, [6, "name"]],
  ...[7, 3, 4, 8, 9].map((type): [number, RdataLayout] => [type, ONE_NAME]),
  ...[14, 17].map((type): [number, RdataLayout] => [type, TWO_NAMES]),
  ...[18, 21, 36].map((type): [number, RdataLayout] => [type, NUMBER_AND_NAME]),
  [26, [2, "name", "name"]],
  [30, ONE_NAME],
  [24, [18, "name"]],
  [35, [4, "string", "string", "string", "name"]],
]);

/**
 * Reads `length` bytes of rdata and gives them uncompressed. Rdata of a type that zones hold is checked, except where
 * UPDATE has records without any (RFC 2136 section 2.4). Faults go to the reader.
 */
export function readWireRdata(reader: Reader, type: number, recordClass: number, length: number): Uint8Array {
  const end = reader.at + length;
  if (end > reader.end) failReader(reader, "rdata ends outside of the message");
  if (reader.fault !== "") return new Uint8Array(0);
  const isOfUpdate = recordClass === CLASS.ANY || recordClass === CLASS.NONE;
  const layout = LAYOUTS.get(type);
  if (layout === undefined || (length === 0 && isOfUpdate)) {
    const bytes = readBytes(reader, length);
    if (length > 0 || !isOfUpdate) checkKnown(reader, type, recordClass, bytes);
    return bytes;
  }
  const parts: Uint8Array[] = [];
  for (const part of layout) parts.push(readPart(reader, part));
  if (reader.at > end) failReader(reader, "rdata reads past its end");
  parts.push(readBytes(reader, Math.max(0, end - reader.at)));
  const rdata = concat(parts);
  checkKnown(reader, type, recordClass, rdata);
  return rdata;
}

/** Writes uncompressed rdata, with its names compressed where the type allows it; without its length. */
export function writeWireRdata(writer: Writer, type: number, rdata: Uint8Array): void {
  const layout = rdataTypeOf(type)?.isCompressible === true ? LAYOUTS.get(type) : undefined;
  if (layout === undefined || checkRdata(type, rdata, 0, rdata.length) !== undefined) {
    writeBytes(writer, rdata);
    return;
  }
  let at = 0;
  for (const part of layout) {
    if (part === "name") {
      const length = nameLengthAt(rdata, at, rdata.length);
      writeCompressedName(writer, rdata.subarray(at, at + length));
      at += length;
    } else {
      const length = part === "string" ? rdata[at]! + 1 : part;
      writeBytes(writer, rdata.subarray(at, at + length));
      at += length;
    }
  }
}

function readPart(reader: Reader, part: number | "name" | "string"): Uint8Array {
  if (part === "name") return readName(reader);
  if (part !== "string") return readBytes(reader, part);
  const length = readUint8(reader);
  const text = readBytes(reader, length);
  return concat([Uint8Array.of(length), text]);
}

function checkKnown(reader: Reader, type: number, recordClass: number, rdata: Uint8Array): void {
  if (recordClass !== CLASS.IN && recordClass !== CLASS.NONE) return;
  if (rdataTypeOf(type) === undefined || type === RRTYPE.ALIAS) return;
  const fault = checkRdata(type, rdata, 0, rdata.length);
  if (fault !== undefined) failReader(reader, `rdata: ${fault}`);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

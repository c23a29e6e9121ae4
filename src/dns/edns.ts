/** EDNS(0): the OPT pseudo-record and its options (RFC 6891), and the text of extended errors (RFC 8914). */

import { EDNS_OPTION, RRTYPE } from "./codes.ts";
import { openReader, type Reader, readBytes, readUint16 } from "./reader.ts";
import { type Writer, writeBytes, writeUint8, writeUint16 } from "./writer.ts";

export type EdnsOption = { readonly code: number; readonly data: Uint8Array };

export type Edns = {
  /** Largest UDP payload that the sender takes, in bytes, as it stated it. */
  readonly udpSize: number;
  readonly version: number;
  /** The DO bit. */
  readonly wantsDnssec: boolean;
  readonly options: readonly EdnsOption[];
};

export type ExtendedError = { readonly code: number; readonly text: string };

const DNSSEC_OK = 0x8000;
const OPT_FIXED_BYTES = 11;
const OPTION_HEADER_BYTES = 4;
const decoder = new TextDecoder();

/** Options in the rdata of an OPT record, or undefined where they do not fill it exactly. */
export function optionsFromRdata(rdata: Uint8Array): readonly EdnsOption[] | undefined {
  const reader: Reader = openReader(rdata);
  const options: EdnsOption[] = [];
  while (reader.at < reader.end && reader.fault === "") {
    const code = readUint16(reader);
    const data = readBytes(reader, readUint16(reader));
    options.push({ code, data });
  }
  return reader.fault === "" ? options : undefined;
}

/** OPT from the fields of its record: the class is the size, the TTL has version and flags (RFC 6891 section 6.1.3). */
export function ednsFromRecord(recordClass: number, ttl: number, options: readonly EdnsOption[]): Edns {
  return {
    udpSize: recordClass,
    version: (ttl >>> 16) & 0xff,
    wantsDnssec: (ttl & DNSSEC_OK) !== 0,
    options,
  };
}

/** Upper eight bits of the RCODE, from the TTL of an OPT record. */
export function rcodeUpperBits(ttl: number): number {
  return (ttl >>> 24) << 4;
}

/** Bytes that `writeEdns` writes. */
export function ednsBytes(edns: Edns): number {
  return edns.options.reduce((sum, option) => sum + OPTION_HEADER_BYTES + option.data.length, OPT_FIXED_BYTES);
}

/** Writes the OPT record; `rcode` is the whole RCODE, of which its upper eight bits go here. */
export function writeEdns(writer: Writer, edns: Edns, rcode: number): void {
  writeUint8(writer, 0);
  writeUint16(writer, RRTYPE.OPT);
  writeUint16(writer, edns.udpSize);
  writeUint8(writer, rcode >> 4);
  writeUint8(writer, edns.version);
  writeUint16(writer, edns.wantsDnssec ? DNSSEC_OK : 0);
  writeUint16(writer, ednsBytes(edns) - OPT_FIXED_BYTES);
  for (const option of edns.options) {
    writeUint16(writer, option.code);
    writeUint16(writer, option.data.length);
    writeBytes(writer, option.data);
  }
}

/** The first option of a code. */
export function findOption(edns: Edns | undefined, code: number): Uint8Array | undefined {
  return edns?.options.find((option) => option.code === code)?.data;
}

/** The extended errors of a message; options too short for an INFO-CODE are passed over. */
export function extendedErrorsOf(edns: Edns | undefined): readonly ExtendedError[] {
  const options = edns?.options.filter((option) => option.code === EDNS_OPTION.EDE && option.data.length >= 2) ?? [];
  return options.map(({ data }) => ({ code: (data[0]! << 8) | data[1]!, text: decoder.decode(data.subarray(2)) }));
}

/** The SOA record of a zone (RFC 1035 section 3.3.13): the server makes it from the zone's fields. */
import { nameFromText, nameLengthAt, nameToText } from "../dns/name.ts";
import type { Soa } from "./objects.ts";

/** Its rdata in wire form, uncompressed. */
export function soaRdata(soa: Soa, serial: number): Uint8Array {
  const names = [soa.mname, soa.rname].map((text) => {
    const result = nameFromText(text);
    if (result.kind === "error") throw new Error(`${JSON.stringify(text)} is stored and no name: ${result.reason}`);
    return result.name;
  });
  const numbers = [serial, soa.refresh, soa.retry, soa.expire, soa.minimum];
  const length = names.reduce((sum, name) => sum + name.length, 0);
  const wire = new Uint8Array(length + numbers.length * 4);
  let at = 0;
  for (const name of names) {
    wire.set(name, at);
    at += name.length;
  }
  const view = new DataView(wire.buffer);
  for (const [index, number] of numbers.entries()) view.setUint32(at + index * 4, number);
  return wire;
}

/** The other way: rdata that is valid and uncompressed. */
export function soaFromRdata(wire: Uint8Array): Soa & { readonly serial: number } {
  const rnameAt = nameLengthAt(wire, 0, wire.length);
  const numbersAt = rnameAt + nameLengthAt(wire, rnameAt, wire.length);
  const view = new DataView(wire.buffer, wire.byteOffset + numbersAt, wire.length - numbersAt);
  return {
    mname: nameToText(wire),
    rname: nameToText(wire, rnameAt),
    serial: view.getUint32(0),
    refresh: view.getUint32(4),
    retry: view.getUint32(8),
    expire: view.getUint32(12),
    minimum: view.getUint32(16),
  };
}

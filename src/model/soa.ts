/** The SOA record of a zone (RFC 1035 section 3.3.13): the server makes it from the zone's fields. */
import { nameFromText } from "../dns/name.ts";
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

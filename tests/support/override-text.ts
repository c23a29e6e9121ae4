/** Overrides as text, without a store. */
import assert from "node:assert/strict";
import { RRTYPE } from "../../src/dns/codes.ts";
import { nameToText } from "../../src/dns/name.ts";
import { parseZoneFile } from "../../src/dns/zone-file.ts";
import { createNameKey } from "../../src/image/name-key.ts";
import { discardZone, showOverrides } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { beginOverrides, putOverride } from "../../src/publish/override-image.ts";
import { createRRsetBuffer } from "../../src/publish/rrset-wire.ts";

/** Lets these overrides answer and no others: records as in a zone file, with full names and a TTL of 300 for none. */
export function publishOverrides(writer: ImageWriter, text: string): void {
  const rrsets = new Map<string, { owner: Uint8Array; type: number; ttl: number; rdatas: Uint8Array[] }>();
  const { errors } = parseZoneFile(Buffer.from(`$TTL 300\n. SOA . . 1 1 1 1 1\n${text}`), {
    origin: Uint8Array.of(0),
    onRecord(owner, ownerLength, type, ttl, rdata, rdataLength) {
      const name = owner.slice(0, ownerLength);
      const key = `${nameToText(name)} ${type}`;
      const rrset = rrsets.get(key) ?? { owner: name, type, ttl, rdatas: [] };
      rrset.rdatas.push(rdata.slice(0, rdataLength));
      if (type !== RRTYPE.SOA) rrsets.set(key, rrset);
    },
  });
  assert.deepEqual(errors, []);
  const tools = { writer, apex: createNameKey(), owner: createNameKey(), buffer: createRRsetBuffer() };
  const handle = beginOverrides(tools);
  const byName = Map.groupBy(rrsets.values(), ({ owner }) => nameToText(owner));
  for (const ofName of byName.values()) assert.deepEqual(putOverride(tools, handle, ofName[0]!.owner, ofName), []);
  if (byName.size === 0) discardZone(writer, handle);
  showOverrides(writer, byName.size === 0 ? undefined : handle);
}

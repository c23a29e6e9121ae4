import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { nameFromText, nameToText } from "./name.ts";
import { parseZoneFile } from "./zone-file.ts";
import { recordToText } from "./zone-print.ts";
import type { ZoneFileReport } from "./zone-report.ts";

function parseVector(
  file: string,
  origin: string,
): { readonly lines: readonly string[]; readonly report: ZoneFileReport } {
  const lines: string[] = [];
  const name = nameFromText(origin);
  const text = readFileSync(new URL(`../../tests/vectors/${file}`, import.meta.url));
  const report = parseZoneFile(text, {
    ...(name.kind === "name" ? { origin: name.name } : {}),
    onRecord: (owner, ownerLength, type, ttl, rdata, rdataLength) => {
      lines.push(recordToText({ owner: owner.slice(0, ownerLength), type, ttl, rdata: rdata.slice(0, rdataLength) }));
    },
  });
  return { lines, report };
}

test("an export of Windows DNS: ages passed over, WINS left out, the SOA's minimum as default", () => {
  const { lines, report } = parseVector("windows-export.zone", "corp.example.test.");
  const zone = "corp.example.test.";
  assert.deepEqual(report.errors, []);
  assert.deepEqual(report.leftOut, [{ line: 24, column: 1, owner: zone, type: "WINS" }]);
  assert.equal(report.soaIsAbsolute, false);
  assert.deepEqual(lines, [
    `${zone} 3600 IN SOA dc1.${zone} hostmaster.${zone} 42 900 600 86400 3600`,
    `${zone} 3600 IN NS dc1.${zone}`,
    `dc1.${zone} 3600 IN A 10.0.0.10`,
    `${zone} 600 IN A 10.0.0.10`,
    `_gc._tcp.Default-First-Site-Name._sites.${zone} 600 IN SRV 0 100 3268 dc1.${zone}`,
    `_ldap._tcp.${zone} 600 IN SRV 0 100 389 dc1.${zone}`,
    `_ldap._tcp.${zone} 600 IN SRV 0 100 390 dc1.${zone}`,
    `alias.${zone} 3600 IN CNAME dc1.${zone}`,
    `laptop.${zone} 1200 IN A 10.0.0.21`,
    `laptop.${zone} 1200 IN AAAA fd00::21`,
    `printer.${zone} 600 IN A 10.0.0.22`,
    `note.${zone} 3600 IN TXT "first part" " and second"`,
    `branch.${zone} 3600 IN NS ns1.branch.${zone}`,
    `ns1.branch.${zone} 3600 IN A 10.1.0.1`,
  ]);
});

test("the output of dig axfr: comments, the SOA twice, DNSSEC and TSIG left out", () => {
  const { lines, report } = parseVector("dig-axfr.zone", "elsewhere.test.");
  assert.deepEqual(report.errors, []);
  assert.equal(report.soaIsAbsolute, true);
  assert.equal(nameToText(report.origin ?? new Uint8Array([0])), "example.test.");
  assert.deepEqual(lines, [
    "example.test. 3600 IN SOA ns1.example.test. hostmaster.example.test. 7 7200 900 1209600 300",
    "example.test. 3600 IN NS ns1.example.test.",
    'example.test. 3600 IN TXT "two" "strings; one with a semicolon"',
    "ns1.example.test. 3600 IN A 192.0.2.1",
    "\\@odd\\.name.example.test. 60 IN A 192.0.2.2",
  ]);
  assert.deepEqual(
    report.leftOut.map((record) => record.type),
    ["DNSKEY", "TYPE65400", "TSIG"],
  );
});

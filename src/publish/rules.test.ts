import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, zone } from "../../tests/support/zone-lab.ts";
import { publishZoneFile } from "./zone-file-source.ts";

/** The errors of a zone with these records, which stand from line 6 on. */
function errorsOf(body: string): readonly string[] {
  const { writer } = openLab([]);
  const { errors } = publishZoneFile(writer, Buffer.from(zone("example.test.", body)));
  return errors.map(({ line, detail }) => `${line - 5}: ${detail}`);
}

const FAULTS = [
  ["CNAME beside an A", "a A 192.0.2.1\na CNAME b", ["2: CNAME beside other records of the same name"]],
  ["an A beside a CNAME", "a CNAME b\na A 192.0.2.1", ["2: CNAME beside other records of the same name"]],
  ["CNAME beside a delegation", "a NS b\na CNAME b", ["2: CNAME beside other records of the same name"]],
  ["several CNAMEs", "a CNAME b\na CNAME c", ["1: several CNAME records at one name"]],
  ["CNAME at the apex", "@ CNAME b", ["1: CNAME at the apex of a zone"]],
  ["ALIAS beside an A", "a A 192.0.2.1\na ALIAS b", ["2: ALIAS beside other records of the same name"]],
  ["ALIAS beside a TXT", "a ALIAS b\na TXT x", ["2: ALIAS beside other records of the same name"]],
  ["ALIAS beside NS below the apex", "a ALIAS b\na NS b", ["2: ALIAS beside other records of the same name"]],
  ["several ALIASes", "a ALIAS b\na ALIAS c", ["1: several ALIAS records at one name"]],
  ["ALIAS beside an A at the apex", "@ ALIAS b\n@ A 192.0.2.1", ["2: ALIAS beside other records of the same name"]],
  ["CNAME beside ALIAS", "a CNAME b\na ALIAS b", ["2: ALIAS beside other records of the same name"]],
  [
    "each fault is told",
    "a CNAME b\na A 192.0.2.1\n@ CNAME b\n",
    ["2: CNAME beside other records of the same name", "3: CNAME at the apex of a zone"],
  ],
  ["letter case aside", "A CNAME b\na TXT x", ["2: CNAME beside other records of the same name"]],
] as const;

for (const [why, body, errors] of FAULTS) {
  test(`a fault: ${why}`, () => assert.deepEqual(errorsOf(body), errors));
}

const GOOD = [
  ["the same CNAME twice", "a CNAME b\na CNAME B"],
  ["ALIAS at the apex beside SOA and NS", "@ ALIAS b"],
  ["the same ALIAS twice", "a ALIAS b\na ALIAS b"],
  ["a name below a CNAME", "a CNAME b\nx.a A 192.0.2.1"],
  ["CNAME at a wildcard", "* CNAME b"],
  [
    "everything else together",
    "a A 192.0.2.1\na AAAA ::1\na MX 10 b\na TXT x\na NS b\na PTR b\na CAA 0 issue x\na SRV 1 1 1 b",
  ],
] as const;

for (const [why, body] of GOOD) test(`no fault: ${why}`, () => assert.deepEqual(errorsOf(body), []));

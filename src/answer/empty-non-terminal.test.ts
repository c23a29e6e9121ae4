import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

/** A name without records that has names below it exists (RFC 8020, RFC 4592 section 2.2.2): NODATA, not NXDOMAIN. */
const lab = openLab([
  zone(
    "example.test.",
    "a.b.c A 192.0.2.1\n_sip._tcp SRV 1 1 1 a.b.c\n*.wild.deep A 192.0.2.2\nx.y.cut-above NS ns.else.test.\n",
  ),
  zone("held.below.example.test."),
]);
const NODATA = ["NOERROR aa", negative("example.test.")];
const NXDOMAIN = ["NXDOMAIN aa", negative("example.test.")];

testAnswers(lab, [
  ["one label above a record", "b.c.example.test. A", NODATA],
  ["two labels above a record", "c.example.test. A", NODATA],
  ["two labels above a record, in upper case", "C.example.test. TXT", NODATA],
  ["a service's protocol", "_tcp.example.test. SRV", NODATA],
  ["above a wildcard", "wild.deep.example.test. A", NODATA],
  ["above a wildcard's parent", "deep.example.test. A", NODATA],
  ["above a zone cut", "y.cut-above.example.test. A", NODATA],
  ["two labels above a zone cut", "cut-above.example.test. NS", NODATA],
  ["beside it", "x.c.example.test. A", NXDOMAIN],
  ["its label elsewhere", "b.example.test. A", NXDOMAIN],
  ["a zone held below makes no name in its parent", "below.example.test. A", NXDOMAIN],
]);

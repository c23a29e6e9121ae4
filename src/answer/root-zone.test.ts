import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

const ROOT = `
com. NS a.gtld.
com. NS ns.com.
ns.com. A 192.0.2.1
www. A 192.0.2.2
alias. CNAME www.
to-held. CNAME www.held.
mx. MX 10 www.
*.wild. A 192.0.2.3
null. MX 0 .
`;
const lab = openLab([zone(".", ROOT), zone("held.", "www A 198.51.100.1\nup CNAME www.\n")]);

testAnswers(lab, [
  ["the SOA", ". SOA", ["NOERROR aa", "answer . 300 IN SOA ns1. hostmaster. 1 7200 900 1209600 60"]],
  ["the NS", ". NS", ["NOERROR aa", "answer . 300 IN NS ns1.", "additional ns1. 300 IN A 192.0.2.53"]],
  ["a type that the root has not", ". A", ["NOERROR aa", negative(".")]],
  ["DS of the root has no parent to ask", ". DS", ["NOERROR aa", negative(".")]],
  ["a name", "www. A", ["NOERROR aa", "answer www. 300 IN A 192.0.2.2"]],
  ["no such name", "nope.nope. A", ["NXDOMAIN aa", negative(".")]],
  [
    "a delegation",
    "www.example.com. A",
    [
      "NOERROR",
      "authority com. 300 IN NS a.gtld.",
      "authority com. 300 IN NS ns.com.",
      "additional ns.com. 300 IN A 192.0.2.1",
    ],
  ],
  ["DS at a delegation", "com. DS", ["NOERROR aa", negative(".")]],
  ["an alias", "alias. A", ["NOERROR aa", "answer alias. 300 IN CNAME www.", "answer www. 300 IN A 192.0.2.2"]],
  [
    "an alias into a zone that is held",
    "to-held. A",
    ["NOERROR aa", "answer to-held. 300 IN CNAME www.held.", "answer www.held. 300 IN A 198.51.100.1"],
  ],
  [
    "and one from there",
    "up.held. A",
    ["NOERROR aa", "answer up.held. 300 IN CNAME www.", "answer www. 300 IN A 192.0.2.2"],
  ],
  [
    "additional addresses",
    "mx. MX",
    ["NOERROR aa", "answer mx. 300 IN MX 10 www.", "additional www. 300 IN A 192.0.2.2"],
  ],
  ["a wildcard", "x.y.wild. A", ["NOERROR aa", "answer x.y.wild. 300 IN A 192.0.2.3"]],
  ["the root as target", "null. MX", ["NOERROR aa", "answer null. 300 IN MX 0 ."]],
  ["a zone that is held, no such name", "x.held. A", ["NXDOMAIN aa", negative("held.")]],
]);

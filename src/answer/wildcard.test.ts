import { negative, openLab, testAnswers, zone } from "../../tests/support/zone-lab.ts";

/** The zone of RFC 4592 section 2.2.1. */
const RFC_4592 = `
$ORIGIN example.
$TTL 3600
example. SOA ns.example.com. hostmaster.example. 1 7200 900 1209600 60
example. NS ns.example.com.
example. NS ns.example.net.
*.example. TXT "this is a wildcard"
*.example. MX 10 host1.example.
sub.*.example. TXT "this is not a wildcard"
host1.example. A 192.0.2.1
_ssh._tcp.host1.example. SRV 0 0 22 host1.example.
_ssh._tcp.host2.example. SRV 0 0 22 host2.example.
subdel.example. NS ns.example.com.
subdel.example. NS ns.example.net.
`;
const SOA = "authority example. 60 IN SOA ns.example.com. hostmaster.example. 1 7200 900 1209600 60";
const HOST1 = "additional host1.example. 3600 IN A 192.0.2.1";
const WILD_MX = (owner: string) => ["NOERROR aa", `answer ${owner} 3600 IN MX 10 host1.example.`, HOST1];
const REFERRAL = [
  "NOERROR",
  "authority subdel.example. 3600 IN NS ns.example.com.",
  "authority subdel.example. 3600 IN NS ns.example.net.",
];

testAnswers(openLab([RFC_4592]), [
  ["RFC 4592 2.2.1, synthesised", "host3.example. MX", WILD_MX("host3.example.")],
  ["RFC 4592 2.2.1, no such type at the wildcard", "host3.example. A", ["NOERROR aa", SOA]],
  [
    "RFC 4592 2.2.1, several labels below",
    "foo.bar.example. TXT",
    ["NOERROR aa", 'answer foo.bar.example. 3600 IN TXT "this is a wildcard"'],
  ],
  ["RFC 4592 2.2.1, the name exists", "host1.example. MX", ["NOERROR aa", SOA]],
  ["RFC 4592 2.2.1, sub.*.example. exists", "sub.*.example. MX", ["NOERROR aa", SOA]],
  ["RFC 4592 2.2.1, an ancestor exists without records", "_telnet._tcp.host1.example. SRV", ["NXDOMAIN aa", SOA]],
  ["RFC 4592 2.2.1, below a cut", "host.subdel.example. A", REFERRAL],
  ["RFC 4592 2.2.1, the closest encloser is *.example.", "ghost.*.example. MX", ["NXDOMAIN aa", SOA]],
  ["RFC 4592 2.2.2, an empty non-terminal", "_tcp.host2.example. MX", ["NOERROR aa", SOA]],
  ["RFC 4592 2.2.3, host2 exists without records", "host2.example. MX", ["NOERROR aa", SOA]],
  ["RFC 4592 3.3.1, below _tcp.host2", "x._tcp.host2.example. MX", ["NXDOMAIN aa", SOA]],
  ["RFC 4592 2.3, the asterisk asked for itself", "*.example. MX", WILD_MX("*.example.")],
  ["RFC 4592 2.3, a type that the asterisk has not", "*.example. A", ["NOERROR aa", SOA]],
  ["RFC 4592 2.3, two asterisks", "*.*.example. MX", ["NXDOMAIN aa", SOA]],
  [
    "the name below the asterisk asked for itself",
    "sub.*.example. TXT",
    ["NOERROR aa", 'answer sub.*.example. 3600 IN TXT "this is not a wildcard"'],
  ],
  [
    "it is not synthesised from",
    "sub.x.example. TXT",
    ["NOERROR aa", 'answer sub.x.example. 3600 IN TXT "this is a wildcard"'],
  ],
  [
    "upper case in the question, kept where names point to it",
    "HOST3.eXample. TXT",
    ["NOERROR aa", 'answer HOST3.eXample. 3600 IN TXT "this is a wildcard"'],
  ],
  ["a label that begins with an asterisk is an ordinary one", "*x.example. MX", WILD_MX("*x.example.")],
]);

const OTHERS = `
*.alias CNAME www.example.test.
*.mail MX 10 mail
*.mail TXT "wild"
*.self MX 10 x.self
*.self A 192.0.2.9
www A 192.0.2.1
mail A 192.0.2.2
*.deep.er A 192.0.2.3
a.ent.deep.er TXT "ent"
x.*.inner A 192.0.2.4
*.cut NS ns.elsewhere.test.
*.* A 192.0.2.5
*.*.two A 192.0.2.6
`;
const WWW = "answer www.example.test. 300 IN A 192.0.2.1";

testAnswers(openLab([zone("example.test.", OTHERS)]), [
  [
    "CNAME",
    "x.alias.example.test. A",
    ["NOERROR aa", "answer x.alias.example.test. 300 IN CNAME www.example.test.", WWW],
  ],
  [
    "CNAME, deeper",
    "x.y.z.alias.example.test. A",
    ["NOERROR aa", "answer x.y.z.alias.example.test. 300 IN CNAME www.example.test.", WWW],
  ],
  [
    "CNAME asked for",
    "x.alias.example.test. CNAME",
    ["NOERROR aa", "answer x.alias.example.test. 300 IN CNAME www.example.test."],
  ],
  [
    "MX with names that end in the apex",
    "y.mail.example.test. MX",
    [
      "NOERROR aa",
      "answer y.mail.example.test. 300 IN MX 10 mail.example.test.",
      "additional mail.example.test. 300 IN A 192.0.2.2",
    ],
  ],
  [
    "a target that itself is synthesised",
    "y.self.example.test. MX",
    [
      "NOERROR aa",
      "answer y.self.example.test. 300 IN MX 10 x.self.example.test.",
      "additional x.self.example.test. 300 IN A 192.0.2.9",
    ],
  ],
  [
    "below an empty non-terminal",
    "x.deep.er.example.test. A",
    ["NOERROR aa", "answer x.deep.er.example.test. 300 IN A 192.0.2.3"],
  ],
  ["beside an empty non-terminal", "ent.deep.er.example.test. A", ["NOERROR aa", negative("example.test.")]],
  [
    "below an empty non-terminal beside the asterisk",
    "b.ent.deep.er.example.test. A",
    ["NXDOMAIN aa", negative("example.test.")],
  ],
  ["an asterisk without records is one", "x.inner.example.test. A", ["NOERROR aa", negative("example.test.")]],
  ["a name below that asterisk is no source", "x.y.inner.example.test. A", ["NOERROR aa", negative("example.test.")]],
  [
    "an asterisk below an asterisk, itself an asterisk",
    "x.*.two.example.test. A",
    ["NOERROR aa", "answer x.*.two.example.test. 300 IN A 192.0.2.6"],
  ],
  ["that asterisk's parent has no records", "x.two.example.test. A", ["NOERROR aa", negative("example.test.")]],
  ["the apex is no name below itself", "example.test. TXT", ["NOERROR aa", negative("example.test.")]],
]);

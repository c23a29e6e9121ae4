import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, zone } from "../../tests/support/zone-lab.ts";

const RECORDS = `
www 120 A 192.0.2.1
www 120 A 192.0.2.2
www AAAA 2001:db8::1
mail MX 10 mx.elsewhere.test.
_sip._tcp SRV 1 2 5060 sip.elsewhere.test.
text TXT "one two" "three" ""
caa CAA 0 issue "ca.example"
1.2.0.192 PTR www
sub NS ns.elsewhere.test.
`;
const lab = openLab([zone("example.test.", RECORDS)]);

const CASES: readonly (readonly [question: string, ...answers: string[]])[] = [
  ["www.example.test. A", "www.example.test. 120 IN A 192.0.2.1", "www.example.test. 120 IN A 192.0.2.2"],
  ["www.example.test. AAAA", "www.example.test. 300 IN AAAA 2001:db8::1"],
  ["mail.example.test. MX", "mail.example.test. 300 IN MX 10 mx.elsewhere.test."],
  ["_sip._tcp.example.test. SRV", "_sip._tcp.example.test. 300 IN SRV 1 2 5060 sip.elsewhere.test."],
  ["text.example.test. TXT", 'text.example.test. 300 IN TXT "one two" "three" ""'],
  ["caa.example.test. CAA", 'caa.example.test. 300 IN CAA 0 issue "ca.example"'],
  ["1.2.0.192.example.test. PTR", "1.2.0.192.example.test. 300 IN PTR www.example.test."],
  ["example.test. SOA", "example.test. 300 IN SOA ns1.example.test. hostmaster.example.test. 1 7200 900 1209600 60"],
];

for (const [question, ...answers] of CASES) {
  test(`${question}: the RRset of that name and type, in the order of the file`, () => {
    assert.deepEqual(lab.ask(question), ["NOERROR aa", ...answers.map((answer) => `answer ${answer}`)]);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rdataFromText, rdataToText } from "../dns/rdata.ts";
import { RECORD_TYPES, type RecordType, type RecordValue } from "./objects.ts";
import {
  canonicalText,
  canonicalValues,
  checkValues,
  fieldsFromRdata,
  spellValue,
  typeNumber,
  valueRdata,
} from "./record-values.ts";

function spelled(type: RecordType, text: string): string {
  const result = spellValue(type, text);
  return result.kind === "text" ? result.text : `fault: ${result.detail}`;
}

const LONG = "x".repeat(32_768);

const SPELLINGS: readonly (readonly [type: RecordType, text: string, outcome: string])[] = [
  ["A", "192.0.2.1", "192.0.2.1"],
  ["A", "192.0.2.01", "fault: must be an IPv4 address"],
  ["A", "192.0.2", "fault: must be an IPv4 address"],
  ["A", "192.0.2.256", "fault: must be an IPv4 address"],
  ["A", "192.0.2.1 ", "fault: must be an IPv4 address"],
  ["A", "::1", "fault: must be an IPv4 address"],
  ["A", "", "fault: must be an IPv4 address"],
  ["AAAA", "2001:DB8:0::1", "2001:db8::1"],
  ["AAAA", "::ffff:192.0.2.1", "::ffff:192.0.2.1"],
  ["AAAA", "fe80::1%eth0", "fault: must be an IPv6 address"],
  ["AAAA", "[::1]", "fault: must be an IPv6 address"],
  ["AAAA", "192.0.2.1", "fault: must be an IPv6 address"],
  ["AAAA", "1:2:3:4:5:6:7", "fault: must be an IPv6 address"],
  ["CNAME", "Target.Example", "Target.Example."],
  ["CNAME", ".", "."],
  ["ALIAS", ".", "fault: must be the name of a host"],
  ["MX", ".", "."],
  ["SRV", ".", "."],
  ["NS", "192.0.2.1", "fault: must be a host name, not an address"],
  ["PTR", "a..b", "fault: is not a valid name: empty label"],
  ["ALIAS", "lb.cloud.example", "lb.cloud.example."],
  ["ALIAS", "192.0.2.1.", "fault: must be a host name"],
  ["ALIAS", "*.example.", "fault: must be a host name"],
  ["TXT", "v=spf1 -all", "v=spf1 -all"],
  ["TXT", "naïve ☃", "naïve ☃"],
  ["TXT", '"a"   "b\\065"', '"a" "bA"'],
  ["TXT", '""', '""'],
  ["TXT", "", 'fault: must not be empty; the empty text is written ""'],
  ["TXT", '"a', 'fault: begins with a quotation mark and so must be quoted strings as in a zone file, such as "a" "b"'],
  [
    "TXT",
    '"a" ; comment',
    'fault: begins with a quotation mark and so must be quoted strings as in a zone file, such as "a" "b"',
  ],
  ["TXT", "\ud800", "fault: holds half of a surrogate pair"],
  ["TXT", LONG, LONG],
  ["TXT", `${LONG.slice(1)}é`, "fault: must not be longer than 32768 bytes"],
  ["CAA", "", ""],
  ["CAA", "ca.example; validationmethods=dns-01", "ca.example; validationmethods=dns-01"],
  ["CAA", '"ca.example"', "fault: must be written without quotation marks"],
  ["CAA", "ca\n", "fault: must be printable ASCII"],
];

for (const [type, text, outcome] of SPELLINGS) {
  test(`${type} ${JSON.stringify(text).slice(0, 50)}`, () => assert.equal(spelled(type, text), outcome));
}

function faultsOf(type: RecordType, fields: Parameters<typeof checkValues>[1]): readonly string[] {
  return checkValues(type, fields).faults.map(({ pointer, detail }) => `${pointer}: ${detail}`);
}

test("fields belong to the types that have them", () => {
  const expected: Partial<Record<RecordType, readonly string[]>> = {
    MX: ["priority"],
    SRV: ["priority", "weight", "port"],
    CAA: ["priority", "tag"],
  };
  for (const type of RECORD_TYPES) {
    const fields = { values: [], priority: 1, weight: 1, port: 1, tag: "issue" };
    const refused = checkValues(type, fields).faults.map(({ pointer }) => pointer.slice(1));
    const allowed = ["priority", "weight", "port", "tag"].filter((field) => !refused.includes(field));
    assert.deepEqual(allowed, expected[type] ?? [], type);
  }
  assert.deepEqual(faultsOf("A", { values: [{ value: "192.0.2.1", priority: 1 }] }), [
    "/values/0/priority: A records have no priority",
  ]);
});

test("a port and a tag must be said, of the value or of the record", () => {
  assert.deepEqual(faultsOf("SRV", { values: [{ value: "a." }] }), [
    "/values/0/port: is missing, and the record has no port for all its values",
  ]);
  assert.deepEqual(faultsOf("SRV", { values: [{ value: "a.", port: 1 }, { value: "b." }], port: 2 }), []);
  assert.deepEqual(faultsOf("CAA", { values: [{ value: "" }] }), [
    "/values/0/tag: is missing, and the record has no tag for all its values",
  ]);
  assert.deepEqual(faultsOf("CAA", { values: [{ value: "" }], tag: "issue" }), []);
});

test("the flag of CAA is one byte", () => {
  assert.deepEqual(faultsOf("CAA", { values: [{ value: "" }], tag: "issue", priority: 255 }), []);
  assert.deepEqual(faultsOf("CAA", { values: [{ value: "" }], tag: "issue", priority: 256 }), [
    "/priority: must be from 0 to 255: it is the CAA flag",
  ]);
});

test("a value may be there once with the same numbers, whatever its spelling", () => {
  const twice = ["/values/1: is there twice"];
  assert.deepEqual(faultsOf("AAAA", { values: [{ value: "::1" }, { value: "0::1" }] }), twice);
  assert.deepEqual(faultsOf("CNAME", { values: [{ value: "A.b" }, { value: "a.B." }] }), twice);
  assert.deepEqual(faultsOf("MX", { values: [{ value: "a.", priority: 1 }, { value: "a." }], priority: 1 }), twice);
  assert.deepEqual(faultsOf("MX", { values: [{ value: "a.", priority: 1 }, { value: "a." }], priority: 2 }), []);
  assert.deepEqual(faultsOf("TXT", { values: [{ value: "a" }, { value: '"a"' }] }), twice);
  assert.deepEqual(faultsOf("TXT", { values: [{ value: "a" }, { value: "A" }] }), []);
});

test("a blank region is none", () => {
  const { values } = checkValues("A", {
    values: [
      { value: "192.0.2.1", region: "" },
      { value: "192.0.2.2", region: "eu" },
    ],
  });
  assert.deepEqual(values, [{ value: "192.0.2.1" }, { value: "192.0.2.2", region: "eu" }]);
});

const RDATA: readonly (readonly [type: RecordType, value: RecordValue, text: string])[] = [
  ["A", { value: "192.0.2.1" }, "192.0.2.1"],
  ["AAAA", { value: "2001:db8::1" }, "2001:db8::1"],
  ["MX", { value: "Mail.example.", priority: 10 }, "10 Mail.example."],
  ["MX", { value: "mail.example." }, "0 mail.example."],
  ["SRV", { value: "s.example.", priority: 1, weight: 2, port: 65_535 }, "1 2 65535 s.example."],
  ["CAA", { value: "ca.example", tag: "issue", priority: 128 }, '128 issue "ca.example"'],
  ["CAA", { value: "", tag: "issuewild" }, '0 issuewild ""'],
  ["TXT", { value: "a b" }, '"a b"'],
  ["TXT", { value: '"a" "b"' }, '"a" "b"'],
  ["TXT", { value: "é" }, '"\\195\\169"'],
  ["TXT", { value: "x".repeat(256) }, `"${"x".repeat(255)}" "x"`],
  ["NS", { value: "ns.example." }, "ns.example."],
  ["ALIAS", { value: "lb.example." }, "lb.example."],
];

for (const [type, value, text] of RDATA) {
  test(`${type} ${text.slice(0, 40)} as rdata`, () => {
    const { type: number, wire } = valueRdata({ type }, value);
    assert.equal(rdataToText(number, wire), text);
  });
}

test("numbers of the record hold for the values that say none", () => {
  const record = { type: "SRV", priority: 1, weight: 2, port: 3 } as const;
  assert.equal(rdataToText(33, valueRdata(record, { value: "a.", weight: 9 }).wire), "1 9 3 a.");
});

function fromText(type: RecordType, ...texts: readonly string[]) {
  return fieldsFromRdata(
    type,
    texts.map((text) => {
      const rdata = rdataFromText(typeNumber(type), text);
      return rdata.kind === "rdata" ? rdata.rdata : assert.fail(rdata.detail);
    }),
  );
}

test("numbers that all RRs share come back at the record, others at the values", () => {
  assert.deepEqual(fromText("MX", "10 a.", "10 b."), {
    kind: "fields",
    fields: { values: [{ value: "a." }, { value: "b." }], priority: 10 },
  });
  assert.deepEqual(fromText("SRV", "1 2 80 a.", "1 3 80 a."), {
    kind: "fields",
    fields: {
      values: [
        { value: "a.", weight: 2 },
        { value: "a.", weight: 3 },
      ],
      priority: 1,
      port: 80,
    },
  });
});

test("what no record can hold is named", () => {
  assert.deepEqual(fromText("CAA", '0 issue "a"', '0 contactemail "x@y"'), {
    kind: "fault",
    index: 1,
    detail: "the tag must be one of issue, issuewild, iodef",
  });
});

test("a text comes back as text, or quoted where its strings or bytes need it", () => {
  const value = (text: string) => {
    const result = fromText("TXT", text);
    return result.kind === "fields" ? result.fields.values[0]?.value : assert.fail(result.detail);
  };
  assert.equal(value('"a b"'), "a b");
  assert.equal(value('"a" "b"'), '"a" "b"');
  assert.equal(value('"\\195\\169"'), "é");
  assert.equal(value('"\\255"'), '"\\255"');
  assert.equal(value('"\\239\\187\\191x"'), "\ufeffx");
  assert.equal(value('""'), '""');
  assert.equal(value('"\\"q\\""'), '"\\"q\\""');
});

const strings = fc.array(fc.uint8Array({ maxLength: 255 }), { minLength: 1, maxLength: 4 });

test("any TXT rdata comes back the same", () => {
  fc.assert(
    fc.property(strings, (parts) => {
      const wire = Uint8Array.from(parts.flatMap((part) => [part.length, ...part]));
      const result = fieldsFromRdata("TXT", [wire]);
      assert(result.kind === "fields");
      const { values, faults } = checkValues("TXT", result.fields);
      assert.deepEqual(faults, []);
      assert.deepEqual(values, result.fields.values);
      assert.deepEqual(valueRdata({ type: "TXT" }, values[0]!).wire, wire);
    }),
  );
});

test("any text is refused, or kept and given on the wire", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 600 }), fc.constantFrom(...RECORD_TYPES), (text, type) => {
      const result = spellValue(type, text);
      if (result.kind === "fault") return;
      const again = spellValue(type, result.text);
      assert.deepEqual(again, result, "what is canonical stays as it is");
      const { wire } = valueRdata({ type, tag: "issue" }, { value: result.text });
      assert.doesNotMatch(rdataToText(typeNumber(type), wire), /^\\#/, "rdata that its own type does not understand");
    }),
    { numRuns: 2000 },
  );
});

test("keys of weights are compared as values are", () => {
  assert.equal(canonicalText("AAAA", "2001:DB8::0"), canonicalText("AAAA", "2001:db8::"));
  assert.equal(canonicalText("CNAME", "A.b"), canonicalText("CNAME", "a.B."));
  assert.equal(canonicalText("A", "nonsense"), "nonsense");
});

test("two records hold the same RRset where their canonical values are equal", () => {
  const one = { type: "MX", values: [{ value: "A." }, { value: "b.", priority: 7 }], priority: 5 } as const;
  const other = {
    type: "MX",
    values: [{ value: "b." }, { value: "a.", priority: 5, region: "eu" }],
    priority: 7,
  } as const;
  assert.deepEqual(canonicalValues(one), canonicalValues(other));
});

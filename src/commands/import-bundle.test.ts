import assert from "node:assert/strict";
import { test } from "node:test";
import { IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { readBundle } from "./import-bundle.ts";

function read(value: unknown, target?: string) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return readBundle(Buffer.from(text), target === undefined ? {} : { target });
}

function refused(value: unknown, pattern: RegExp, pointer?: string, target?: string): void {
  assert.throws(
    () => read(value, target),
    (error) => {
      assert.ok(error instanceof Refusal && error.code === "invalid_request", String(error));
      assert.match(error.message, pattern);
      if (pointer !== undefined) assert.equal(error.faults[0]?.pointer, pointer);
      return true;
    },
  );
}

const A = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };
const zone = (...records: unknown[]) => ({ zones: [{ name: "c.test.", records }] });

test("zones with their settings, serials and records; secrets that are masked wait for the incumbent's", () => {
  const template = {
    protocol: "https",
    port: 8443,
    http_config: { headers: { Authorization: "***", Accept: "text/plain" } },
  };
  const [draft] = read({
    version: 1,
    exported_at: "2026-01-31T12:00:00Z",
    zones: [
      {
        name: "C.test.",
        default_ttl: 60,
        soa: { mname: "ns.c.test.", serial: 7 },
        records: [
          { ...A, health_check_template: template },
          { name: "empty", type: "A", values: [], auto_populate: true },
        ],
      },
    ],
  });
  assert.deepEqual(draft?.create, { name: "C.test.", default_ttl: 60, soa: { mname: "ns.c.test." } });
  assert.equal(draft?.serial, 7);
  assert.deepEqual(
    draft?.records.map(({ body }) => [body.zone, body.name, body.values.length]),
    [
      ["c.test.", "empty", 0],
      ["c.test.", "www", 1],
    ],
  );
  const masked = draft?.records.find((record) => record.masked !== undefined);
  assert.equal(masked?.body.name, "www");
  assert.ok(!JSON.stringify(masked?.body).includes("***"));
});

test("a fault names its zone and record, and points at the field", () => {
  refused(
    zone(A, { ...A, name: "x", values: [{ value: "nonsense" }] }),
    /^zone c\.test\., record 1 \(x A\): .*IPv4/,
    "/zones/0/records/1/values/0/value",
  );
  refused(zone({ ...A, typo: 1 }), /record 0 \(www A\).*is not a field/, "/zones/0/records/0/typo");
  refused(zone({ ...A, ttl: 2_147_483_648 }), /record 0/, "/zones/0/records/0/ttl");
  refused(zone({ ...A, values: [] }), /at least one value/, "/zones/0/records/0/values");
  refused(zone(A, A), /there twice/, "/zones/0/records/1/name");
  refused(
    zone(A, { name: "WWW", type: "CNAME", values: [{ value: "x.test." }] }),
    /stands beside a record of type A/,
    "/zones/0/records/1/name",
  );
  refused(zone(7), /record 0: must be an object/, "/zones/0/records/0");
  refused(zone({ ...A, lb_policy: { method: "best" } }), /lb_policy\/method/, "/zones/0/records/0/lb_policy/method");
  refused({ zones: [{ name: "c.test" }] }, /zone c\.test: .*"c\.test\."/, "/zones/0/name");
  refused({ zones: [{ name: "c.test." }, { name: "C.TEST." }] }, /there twice/, "/zones/1/name");
  refused({ zones: [{ name: "c.test.", soa: { serial: -1 } }] }, /soa\/serial/, "/zones/0/soa/serial");
  refused({ zones: [{}] }, /zone at \/zones\/0: \/name is missing/);
});

test("what is no bundle is refused", () => {
  refused("", /not valid JSON/);
  refused("[]", /must be an object/);
  refused("{}", /\/zones is missing/);
  refused('{"zones":[],"__proto__":{}}', /__proto__/);
  refused('{"zones":[],"zones":[]}', /twice/);
  refused(`{"zones":${"[".repeat(100_000)}`, /nested deeper/);
  refused({ version: 2, zones: [] }, /version/);
  refused({ zones: Array.from({ length: 51 }, (_, index) => ({ name: `z${index}.test.` })) }, /zones/);
  assert.throws(() => readBundle(Buffer.from([0x22, 0xff, 0x22])), /UTF-8/);
});

test("too many records of one zone are refused whole; an import into one zone cuts them off", () => {
  const records = Array.from({ length: IMPORT_ZONE_RECORDS_MAX + 1 }, (_, index) => ({ ...A, name: `h${index}` }));
  refused(zone(...records), /more than 50000 records for the zone c\.test\./, "/zones/0/records");
  const [draft] = read({ records }, "c.test.");
  assert.equal(draft?.records.length, IMPORT_ZONE_RECORDS_MAX);
  assert.equal(draft?.errors.length, 1);
});

test("into one zone: its records alone, or a bundle of that zone and no other", () => {
  assert.equal(read({ records: [A] }, "c.test.")[0]?.records.length, 1);
  assert.equal(read(zone(A), "c.test.")[0]?.records.length, 1);
  refused(zone(A), /the import is into the zone other\.test\./, "/zones/0/name", "other.test.");
  refused({ records: [A] }, /zones is missing/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ZoneBody } from "./objects.ts";
import { Refusal } from "./refusal.ts";
import { checkShape } from "./shape.ts";
import { ZoneCreate, ZoneUpdate, ZoneView, zoneFromCreate, zoneView, zoneWithUpdate } from "./zone.ts";

const DETAILS = {
  serial: 7,
  status: "active",
  recordCount: 3,
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
} as const;

function create(given: ZoneCreate, deletionLock = false): ZoneBody {
  assert.deepEqual(checkShape(ZoneCreate, given), []);
  return zoneFromCreate(given, "zon_a", { deletionLock });
}

function update(current: ZoneBody, given: ZoneUpdate): ZoneBody {
  assert.deepEqual(checkShape(ZoneUpdate, given), []);
  return zoneWithUpdate(current, given, DETAILS);
}

function faultsOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal && error.code === "invalid_request") {
      return error.faults.map(({ pointer, detail }) => `${pointer}: ${detail}`);
    }
    throw error;
  }
  return assert.fail("nothing was refused");
}

const ZONE = create({ name: "Corp.Example." });

test("a zone has its defaults", () => {
  assert.deepEqual(ZONE, {
    id: "zon_a",
    name: "corp.example.",
    default_ttl: 3600,
    soa: {
      mname: "ns1.corp.example.",
      rname: "hostmaster.corp.example.",
      refresh: 7200,
      retry: 900,
      expire: 1_209_600,
      minimum: 300,
    },
    deletion_lock: false,
  });
  assert.equal(create({ name: "." }).soa.mname, "ns1.");
});

test("names without their last dot are refused with the right spelling", () => {
  assert.deepEqual(
    faultsOf(() => create({ name: "corp.example", soa: { mname: "ns1.corp.example", rname: "h.corp.example" } })),
    [
      '/name: must be a full name that ends in a dot: "corp.example."',
      '/soa/mname: must be a full name that ends in a dot: "ns1.corp.example."',
      '/soa/rname: must be a full name that ends in a dot: "h.corp.example."',
    ],
  );
  assert.deepEqual(
    faultsOf(() => create({ name: "a.", soa: { rname: "joe.doe@corp.example" } })),
    ['/soa/rname: must be a name, not an address of mail: "joe\\\\.doe.corp.example."'],
  );
});

test("a name too long for the default server asks for one", () => {
  const name = `${`${"a".repeat(63)}.`.repeat(3)}${"b".repeat(58)}.`;
  assert.deepEqual(
    faultsOf(() => create({ name })).map((fault) => fault.split(":")[0]),
    ["/soa/mname", "/soa/rname"],
  );
  assert.equal(create({ name, soa: { mname: "ns.a.", rname: "h.a." } }).soa.mname, "ns.a.");
});

test("the deletion lock is inherited where none is given", () => {
  assert.equal(create({ name: "a." }, true).deletion_lock, true);
  assert.equal(create({ name: "a.", deletion_lock: false }, true).deletion_lock, false);
});

test("the SOA merges by part, the rest is replaced", () => {
  const changed = update(ZONE, { soa: { mname: "NS9.other." }, default_ttl: 5, deletion_lock: true });
  assert.deepEqual(changed, {
    ...ZONE,
    default_ttl: 5,
    deletion_lock: true,
    soa: { ...ZONE.soa, mname: "NS9.other." },
  });
  assert.deepEqual(update(ZONE, {}), ZONE);
});

test("the default policy is set, and goes by null or clear_lb_policy, which contradicts a policy", () => {
  const withPolicy = update(ZONE, { lb_policy: { method: "round-robin" } });
  assert.deepEqual(withPolicy.lb_policy, { method: "round-robin" });
  assert.deepEqual(update(withPolicy, { lb_policy: null }), ZONE);
  assert.deepEqual(update(withPolicy, { clear_lb_policy: true }), ZONE);
  assert.deepEqual(update(withPolicy, { clear_lb_policy: false }), withPolicy);
  assert.deepEqual(
    faultsOf(() => update(ZONE, { clear_lb_policy: true, lb_policy: { method: "latency" } })),
    ["/clear_lb_policy: contradicts lb_policy, which is there too"],
  );
  assert.deepEqual(
    faultsOf(() => update(ZONE, { lb_policy: { method: "weighted", value_weights: { a: 1 } } })).map(
      (each) => each.split(":")[0],
    ),
    ["/lb_policy/value_weights"],
  );
});

test("GET, edit, PUT works; read-only fields that differ are refused", () => {
  const view = zoneView(ZONE, DETAILS);
  assert.deepEqual(checkShape(ZoneView, view), []);
  assert.deepEqual(checkShape(ZoneUpdate, view), []);
  assert.deepEqual(zoneWithUpdate(ZONE, { ...view, default_ttl: 9 }, DETAILS), {
    ...ZONE,
    default_ttl: 9,
  });
  for (const [field, value] of Object.entries({ id: "x", name: "x.", status: "pending", record_count: 9 })) {
    assert.equal(faultsOf(() => update(ZONE, { ...view, [field]: value })).length, 1, field);
  }
  assert.deepEqual(
    faultsOf(() => zoneWithUpdate(ZONE, { soa: { serial: 8 } }, DETAILS)),
    ["/soa/serial: is read-only and differs from the stored value"],
  );
});

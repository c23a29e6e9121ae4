import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordBody } from "./objects.ts";
import {
  RecordCreate,
  RecordUpdate,
  RecordView,
  recordFromCreate,
  recordFromImport,
  recordView,
  recordWithUpdate,
} from "./record.ts";
import { type FieldFault, Refusal } from "./refusal.ts";
import { checkShape } from "./shape.ts";

const ZONE = { id: "zon_a", name: "corp.example." };
const TIMES = { createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-02T00:00:00.000Z" };

function create(given: RecordCreate): RecordBody {
  assert.deepEqual(checkShape(RecordCreate, given), []);
  return recordFromCreate(given, ZONE, "rec_a");
}

function update(current: RecordBody, given: RecordUpdate): RecordBody {
  assert.deepEqual(checkShape(RecordUpdate, given), []);
  return recordWithUpdate(current, given, ZONE, TIMES);
}

function faultsOf(work: () => unknown): readonly FieldFault[] {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal && error.code === "invalid_request") return error.faults;
    throw error;
  }
  return assert.fail("nothing was refused");
}

function pointers(work: () => unknown): readonly string[] {
  return faultsOf(work).map(({ pointer }) => pointer);
}

const A: RecordCreate = { name: "www", type: "A", values: [{ value: "192.0.2.1" }] };

test("a record has its defaults and its canonical spelling", () => {
  assert.deepEqual(create({ name: "WWW", type: "AAAA", values: [{ value: "2001:DB8::1" }] }), {
    id: "rec_a",
    zone: "corp.example.",
    name: "www",
    type: "AAAA",
    ttl: 0,
    values: [{ value: "2001:db8::1" }],
    protected: false,
    auto_populate: false,
  });
});

test("the shape refuses what is no record", () => {
  const shape = (given: unknown) => checkShape(RecordCreate, given).map(({ pointer }) => pointer);
  assert.deepEqual(shape({ ...A, ttl: 2_147_483_648 }), ["/ttl"]);
  assert.deepEqual(shape({ ...A, ttl: -1 }), ["/ttl"]);
  assert.deepEqual(shape({ ...A, ttl: 2_147_483_647 }), []);
  assert.deepEqual(shape({ ...A, type: "SOA" }), ["/type"]);
  assert.deepEqual(shape({ ...A, type: "a" }), ["/type"]);
  assert.deepEqual(shape({ ...A, values: ["192.0.2.1"] }), ["/values/0"]);
  assert.deepEqual(shape({ ...A, values: [{ value: "x", color: 1 }] }), ["/values/0/color"]);
  assert.deepEqual(shape({ ...A, values: [{ value: "x", region: "a b" }] }), ["/values/0/region"]);
  assert.deepEqual(shape({ ...A, values: [{ value: "x", region: "" }] }), []);
  assert.deepEqual(shape({ ...A, id: "rec_b" }), ["/id"]);
  assert.deepEqual(shape({ type: "A" }), ["/name"]);
  assert.deepEqual(shape({ ...A, type: "CAA", tag: "iodev" }), ["/tag"]);
});

test("at least one value, unless the record is to be populated", () => {
  assert.deepEqual(
    pointers(() => create({ name: "www", type: "A" })),
    ["/values"],
  );
  assert.deepEqual(
    pointers(() => create({ name: "www", type: "A", values: [] })),
    ["/values"],
  );
  assert.deepEqual(create({ name: "www", type: "A", auto_populate: true }).values, []);
  assert.equal(create({ ...A, auto_populate: true }).values.length, 1);
  const empty = create({ name: "www", type: "A", auto_populate: true });
  assert.deepEqual(
    pointers(() => update(empty, { auto_populate: false })),
    ["/values"],
  );
});

test("a CNAME is not at the apex, an ALIAS may be", () => {
  const values = [{ value: "lb.example." }];
  assert.deepEqual(
    pointers(() => create({ name: "@", type: "CNAME", values })),
    ["/name"],
  );
  assert.equal(create({ name: "@", type: "ALIAS", values }).name, "@");
  const record = create({ name: "www", type: "CNAME", values });
  assert.deepEqual(
    pointers(() => update(record, { name: "@" })),
    ["/name"],
  );
});

test("all faults are named at once", () => {
  const given: RecordCreate = {
    name: "a..b",
    type: "A",
    priority: 1,
    values: [{ value: "x" }],
    lb_policy: { method: "weighted", value_weights: { y: 1 } },
    health_check_template: { protocol: "tcp" },
  };
  assert.deepEqual(
    pointers(() => create(given)),
    ["/name", "/priority", "/values/0/value", "/lb_policy/value_weights/y", "/health_check_template/port"],
  );
});

test("of very many faults fifty are named", () => {
  const values = Array.from({ length: 1000 }, (_, index) => ({ value: `x${index}` }));
  assert.equal(faultsOf(() => create({ name: "a", type: "A", values })).length, 50);
  const policy = { method: "weighted" as const, value_weights: { ["k".repeat(100_000)]: 1 } };
  assert(JSON.stringify(faultsOf(() => create({ ...A, lb_policy: policy }))).length < 500);
});

test("an update replaces what it gives, whole, and keeps the rest", () => {
  const policy = { method: "failover", failover_order: ["192.0.2.1"] } as const;
  const record = create({
    ...A,
    ttl: 60,
    comment: "old",
    lb_policy: { method: "failover", failover_order: ["192.0.2.1"] },
  });
  assert.deepEqual(update(record, {}), record);
  assert.deepEqual(update(record, { ttl: 0 }), { ...record, ttl: 0 });
  assert.deepEqual(update(record, { lb_policy: { method: "latency" } }).lb_policy, { method: "latency" });
  assert.deepEqual(update(record, { name: "Web" }), { ...record, name: "web", lb_policy: policy });
  assert.equal("comment" in update(record, { comment: null }), false);
  assert.equal("lb_policy" in update(record, { lb_policy: null }), false);
});

test("null takes the numbers of a record away", () => {
  const mx = create({ name: "@", type: "MX", values: [{ value: "mx.example.", priority: 5 }], priority: 10 });
  assert.equal("priority" in update(mx, { priority: null }), false);
});

test("new values must fit the policy that stays", () => {
  const record = create({ ...A, lb_policy: { method: "weighted", value_weights: { "192.0.2.1": 50 } } });
  assert.deepEqual(
    pointers(() => update(record, { values: [{ value: "192.0.2.2" }] })),
    ["/lb_policy/value_weights/192.0.2.1"],
  );
});

test("GET, edit, PUT works; read-only fields that differ are refused", () => {
  const record = create({
    ...A,
    health_check_template: {
      protocol: "https",
      http_config: { headers: { Authorization: "Bearer hush" }, path: "/up" },
    },
  });
  const view = recordView(record, ZONE, TIMES);
  assert.deepEqual(checkShape(RecordView, view), []);
  assert.doesNotMatch(JSON.stringify(view), /hush/);
  assert.deepEqual(checkShape(RecordUpdate, { ...view, ttl: 5 }), []);
  assert.deepEqual(recordWithUpdate(record, { ...view, ttl: 5 }, ZONE, TIMES), { ...record, ttl: 5 });
  for (const field of ["id", "type", "zone_id", "zone_name", "fqdn", "created_at", "updated_at", "shadowed_by"]) {
    assert.deepEqual(
      pointers(() => update(record, { ...view, [field]: "other" })),
      [`/${field}`],
    );
  }
});

test("*** is a stored secret or nothing", () => {
  const template = (secret: string) => ({
    protocol: "http" as const,
    http_config: { oauth2: { token_url: "https://a/", client_id: "a", client_secret: secret } },
  });
  const at = "/health_check_template/http_config/oauth2/client_secret";
  assert.deepEqual(
    pointers(() => create({ ...A, health_check_template: template("***") })),
    [at],
  );
  const record = create({ ...A, health_check_template: template("hush") });
  assert.deepEqual(update(record, { health_check_template: template("***") }), record);
  assert.deepEqual(
    pointers(() => update(create(A), { health_check_template: template("***") })),
    [at],
  );
  const kept = recordFromImport({ ...A, health_check_template: template("***") }, ZONE, "rec_a", record);
  assert.deepEqual(kept, { body: record, secretsMissing: [] });
  const dropped = recordFromImport({ ...A, health_check_template: template("***") }, ZONE, "rec_a", undefined);
  assert.deepEqual(dropped.secretsMissing, [at]);
  assert.deepEqual(dropped.body.health_check_template?.http_config, {});
});

test("*** does not carry a stored secret to another place", () => {
  const template = (host: string, authorization: string) => ({
    protocol: "https" as const,
    http_config: { host, headers: { Authorization: authorization } },
  });
  const at = "/health_check_template/http_config/headers/Authorization";
  const record = create({ ...A, health_check_template: template("good.example", "Bearer hush") });
  const moved = template("evil.example", "***");
  assert.deepEqual(
    pointers(() => update(record, { health_check_template: moved })),
    [at],
  );
  const imported = recordFromImport({ ...A, health_check_template: moved }, ZONE, "rec_a", record);
  assert.deepEqual(imported.secretsMissing, [at]);
  assert.doesNotMatch(JSON.stringify(imported.body), /hush/);
  const anew = update(record, { health_check_template: template("evil.example", "Bearer other") });
  assert.equal(anew.health_check_template?.http_config?.headers?.Authorization, "Bearer other");
  const values = [{ value: "198.51.100.7" }];
  const kept = update(record, { values, health_check_template: template("Good.example.", "***") });
  assert.equal(kept.health_check_template?.http_config?.headers?.Authorization, "Bearer hush");
});

test("a record fits into one value of the store", () => {
  const values = Array.from({ length: 3 }, (_, index) => ({ value: `${index}${"x".repeat(20_000)}` }));
  assert.deepEqual(
    pointers(() => create({ name: "t", type: "TXT", values })),
    ["/values"],
  );
  const most = Array.from({ length: 1000 }, (_, index) => ({ value: `192.0.${index >> 8}.${index & 255}` }));
  assert.equal(create({ name: "t", type: "A", values: most }).values.length, 1000);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  OverrideCreate,
  OverrideUpdate,
  OverrideView,
  overrideFromCreate,
  overrideView,
  overrideWithUpdate,
} from "./override.ts";
import { Refusal } from "./refusal.ts";
import { checkShape } from "./shape.ts";

const TIMES = { createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:00.000Z" };
const GIVEN: OverrideCreate = { name: "DB.partner.example", type: "A", values: [{ value: "192.0.2.1" }] };

function pointers(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal && error.code === "invalid_request") return error.faults.map(({ pointer }) => pointer);
    throw error;
  }
  return assert.fail("nothing was refused");
}

test("an override has a full name, with or without its dot, and its defaults", () => {
  assert.deepEqual(checkShape(OverrideCreate, GIVEN), []);
  assert.deepEqual(overrideFromCreate(GIVEN, "ovr_a"), {
    id: "ovr_a",
    name: "db.partner.example.",
    type: "A",
    ttl: 300,
    values: [{ value: "192.0.2.1" }],
    enabled: true,
  });
});

test("values follow the rules of records, and there is at least one", () => {
  assert.deepEqual(
    pointers(() => overrideFromCreate({ ...GIVEN, values: [] }, "ovr_a")),
    ["/values"],
  );
  assert.deepEqual(
    pointers(() => overrideFromCreate({ ...GIVEN, name: "@", values: [{ value: "x" }] }, "ovr_a")),
    ["/name", "/values/0/value"],
  );
});

test("*** does not carry a stored secret to another place", () => {
  const template = (token_url: string, client_secret: string) => ({
    protocol: "https" as const,
    http_config: { oauth2: { token_url, client_id: "id", client_secret } },
  });
  const body = overrideFromCreate(
    { ...GIVEN, health_check_template: template("https://login.example/", "hush") },
    "ovr_a",
  );
  assert.deepEqual(
    pointers(() => overrideWithUpdate(body, { health_check_template: template("https://evil.example/", "***") })),
    ["/health_check_template/http_config/oauth2/client_secret"],
  );
  const values = [{ value: "198.51.100.7" }];
  const kept = overrideWithUpdate(body, { values, health_check_template: template("https://login.example/", "***") });
  assert.equal(kept.health_check_template?.http_config?.oauth2?.client_secret, "hush");
});

test("it ends at a time, which can be taken away", () => {
  const ending = overrideFromCreate({ ...GIVEN, expires_at: "2030-01-01T01:00:00+01:00" }, "ovr_a");
  assert.equal(ending.expires_at, "2030-01-01T00:00:00.000Z");
  assert.equal("expires_at" in overrideWithUpdate(ending, { expires_at: null }), false);
  assert.deepEqual(
    checkShape(OverrideCreate, { ...GIVEN, expires_at: "tomorrow" }).map(({ pointer }) => pointer),
    ["/expires_at"],
  );
});

test("GET, edit, PUT works; read-only fields that differ are refused", () => {
  const body = overrideFromCreate(GIVEN, "ovr_a");
  const view = overrideView(body, TIMES);
  assert.deepEqual(checkShape(OverrideView, view), []);
  assert.deepEqual(checkShape(OverrideUpdate, view), []);
  assert.deepEqual(overrideWithUpdate(body, { ...view, enabled: false }, TIMES), { ...body, enabled: false });
  assert.deepEqual(
    pointers(() => overrideWithUpdate(body, { ...view, type: "MX" }, TIMES)),
    ["/type"],
  );
});

import assert from "node:assert/strict";
import test from "node:test";
import { isBodyOf, isShallow } from "./body-shapes.ts";
import type { Bodies, Kind } from "./objects.ts";

const http = {
  headers: { "x-key": "secret" },
  expected_status: [200],
  oauth2: { token_url: "https://a.test/", client_id: "id", client_secret: "secret" },
  mtls: { cert_pem: "cert", key_pem: "key" },
};
const lb_policy = { method: "weighted", value_weights: { "192.0.2.1": 100 } } as const;
const answer = {
  ...({ id: "rec_1", name: "www", type: "A", ttl: 0, values: [{ value: "192.0.2.1", region: "eu" }] } as const),
  ...{ lb_policy, health_check_template: { protocol: "https", interval_seconds: 15, http_config: http } as const },
};
const soa = { mname: "ns.test.", rname: "admin.test.", refresh: 1, retry: 1, expire: 1, minimum: 1 };

/** Of each kind one body that holds as much as it may. */
const BODIES: { readonly [K in Kind]: Bodies[K] } = {
  zone: { id: "zon_1", name: "corp.test.", default_ttl: 60, soa, deletion_lock: false, lb_policy },
  record: { ...answer, zone: "corp.test.", protected: false, auto_populate: false },
  override: { ...answer, enabled: true, expires_at: "2030-01-01T00:00:00Z" },
  user: { id: "usr_1", username: "ann", role: "editor", enabled: true, password_hash: "$argon2id$" },
  session: { id: "ses_1", user_id: "usr_1", generation: 1, rotated_at: 1_790_000_000_000, revoked: false },
  "service-account": {
    ...({ id: "sva_1", name: "ci", role: "editor", zone_ids: ["zon_1"], revoked: false, version: 1 } as const),
    ...{ secret_hash: "00", issuing_node: "a" },
  },
  "tsig-key": {
    ...{ id: "tsk_1", name: "key.", algorithm: "hmac-sha256", secret: "c2VjcmV0", management_view: false },
    grants: [{ zone: "corp.test.", names: ["www"], types: ["A"], update: true }],
  },
  "subnet-mapping": { id: "map_1", subnet: "10.0.0.0/8", region_id: "eu", source: "api" },
  config: { name: "cluster", settings: { a: [1, { b: null }] } },
  healthcheck: {
    ...({ id: "chk_1", name: "web", protocol: "https", target: "192.0.2.1:443", interval_seconds: 10 } as const),
    ...{ timeout_seconds: 1, failure_threshold: 3, http_config: http, script_config: { command: "/bin/true" } },
  },
  forwarder: { id: "fwd_1", domain: "fwd.test.", upstreams: ["192.0.2.1"] },
  "stub-zone": { id: "stb_1", domain: "stub.test.", hints: ["192.0.2.1"] },
  blocklist: { name: "blocklist", count: 1, shards: ["00"] },
  "blocklist-part": { hash: "00", names: "" },
  node: { id: "a", region: "", address: "192.0.2.1:7946", version: "1" },
};

type Place = readonly (string | number)[];

function* placesIn(value: unknown, place: Place = []): Generator<Place> {
  if (place.length > 0) yield place;
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) yield* placesIn(member, [...place, name]);
}

/** A copy with another value at that place. */
function withValue(body: object, place: Place, value: unknown): unknown {
  const copy = structuredClone(body);
  // biome-ignore lint/suspicious/noExplicitAny: it goes wherever the place leads.
  const holder = place.slice(0, -1).reduce((at: any, name) => at[name], copy);
  holder[place.at(-1) ?? ""] = value;
  return copy;
}

for (const [kind, body] of Object.entries(BODIES) as [Kind, object][]) {
  test(`a ${kind} of another node has known fields of known types, and may have more`, () => {
    assert.ok(isBodyOf(kind, body));
    assert.ok(isBodyOf(kind, { ...body, later: { version: [1] } }));
    for (const place of placesIn(body)) {
      if (kind === "config" && place.length > 1) continue;
      for (const wrong of [null, -1, 0.5, Number.MAX_VALUE, Symbol("no JSON")]) {
        assert.ok(!isBodyOf(kind, withValue(body, place, wrong)), `${place.join(".")}: ${String(wrong)}`);
      }
    }
  });
}

test("what would be done again at once, for ever, is refused, and words of later versions are not", () => {
  assert.ok(!isBodyOf("healthcheck", { ...BODIES.healthcheck, interval_seconds: 0 }));
  assert.ok(isBodyOf("healthcheck", { ...BODIES.healthcheck, protocol: "grpc" }));
  assert.ok(isBodyOf("record", { ...BODIES.record, type: "HTTPS", values: [] }));
});

test("recursion through a value ends, and a depth that bodies have is none too deep", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 32; depth++) deep = [deep];
  assert.ok(isShallow(deep));
  assert.ok(!isShallow([deep]));
  assert.ok(!isShallow(JSON.parse("[".repeat(100_000) + "]".repeat(100_000))));
});

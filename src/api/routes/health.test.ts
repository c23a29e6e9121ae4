import assert from "node:assert/strict";
import test from "node:test";
import { type ApiReply, startApi, type TestApi } from "../../../tests/support/api.ts";
import { type HealthLab, openHealthLab } from "../../../tests/support/health-plane.ts";
import { waitFor } from "../../../tests/support/wait.ts";
import type { CommandContext } from "../../commands/run.ts";
import type { RecordType } from "../../model/objects.ts";
import type { Route } from "../route.ts";
import { healthRoutes } from "./health.ts";
import { healthCheckRoutes } from "./health-checks.ts";

type World = AsyncDisposable & {
  readonly api: TestApi;
  readonly health: HealthLab;
  readonly status: (query?: string) => Promise<ApiReply["body"]>;
};

async function startWorld(): Promise<World> {
  let health: HealthLab | undefined;
  const routes = (context: CommandContext): readonly Route[] => {
    health = openHealthLab(context.store);
    return [...healthCheckRoutes({ ...context, areScriptsEnabled: true }), ...healthRoutes(context, health.view)];
  };
  const api = await startApi(routes);
  assert.ok(health !== undefined);
  const plane = health;
  return {
    api,
    health: plane,
    status: async (query = "") => {
      const { status, body, text } = await api.ask("GET", `/health/status${query}`, { as: "readonly" });
      assert.equal(status, 200, text);
      return body;
    },
    [Symbol.asyncDispose]: async () => {
      plane[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

type Gated = { readonly zone?: string; readonly name?: string; readonly type?: RecordType };

function gate(
  { health }: World,
  of: readonly string[],
  { zone = "corp.", name = "www", type = "A" }: Gated = {},
): void {
  health.gates.gate({
    ...{ zone, name, type, id: `rec_${zone}${name}`, method: "region" },
    template: { protocol: "https", http_config: { headers: { authorization: "a secret" }, host: "app.example" } },
    values: of.map((value) => ({ value, region: "eu" })),
  });
}

/** The health thread has heard of everything so far. */
async function heard({ health }: World, count: number): Promise<void> {
  await waitFor(`${count} probes`, 5000, () => health.fake.specs.size === count);
}

function keyOf({ health }: World, host: string): string {
  for (const [key, spec] of health.fake.specs) if (spec.host === host) return key;
  assert.fail(`nothing probes ${host}`);
}

test("the status of a value says state, counters, probes, what it gates and whether the record fails open", async () => {
  await using world = await startWorld();
  gate(world, ["192.0.2.1", "192.0.2.2"]);
  gate(world, ["192.0.2.1"], { name: "api" });
  await heard(world, 2);
  const key = keyOf(world, "192.0.2.1");
  const atMs = Date.parse("2026-03-01T10:00:00Z");
  world.health.fake.turn(key, "unhealthy");
  world.health.fake.set(key, {
    ...{ sinceMs: atMs, checkedMs: atMs + 1, nextMs: atMs + 15_000, failures: 4, latencyUs: 1500 },
    history: [
      { atMs: atMs - 1, latencyUs: 900 },
      { atMs, latencyUs: 5_000_000, error: "connect_timeout", detail: "no answer within 5 s" },
    ],
  });
  await waitFor("the verdict", 5000, () => world.health.events.length === 2);
  const { node_id, items, next_cursor } = await world.status();
  assert.deepEqual([node_id, next_cursor, items.length], ["test-node", null, 3]);
  assert.deepEqual(
    items.map((item: { name: string; value: string; record_status: string }) => [
      item.name,
      item.value,
      item.record_status,
    ]),
    [
      ["api", "192.0.2.1", "unhealthy"],
      ["www", "192.0.2.1", "degraded"],
      ["www", "192.0.2.2", "degraded"],
    ],
  );
  const records = [
    { record_id: "rec_corp.www", zone: "corp.", name: "www", type: "A" },
    { record_id: "rec_corp.api", zone: "corp.", name: "api", type: "A" },
  ];
  assert.deepEqual(items[0], {
    ...{ kind: "value", record_id: "rec_corp.api", zone: "corp.", name: "api", type: "A" },
    ...{ value: "192.0.2.1", region: "eu", target: "192.0.2.1:443", protocol: "https", interval_seconds: 15 },
    ...{ timeout_seconds: 5, failure_threshold: 3, recovery_threshold: 2, probed: true, state: "unhealthy" },
    ...{ since: "2026-03-01T10:00:00.000Z", checked_at: "2026-03-01T10:00:00.001Z" },
    ...{ next_probe_at: "2026-03-01T10:00:15.000Z", stale: false, failures: 4, successes: 0, latency_ms: 1.5 },
    probes: [
      { at: "2026-03-01T09:59:59.999Z", result: "success", latency_ms: 0.9 },
      {
        ...{ at: "2026-03-01T10:00:00.000Z", result: "failure", latency_ms: 5000 },
        ...{ error: "connect_timeout", detail: "no answer within 5 s" },
      },
    ],
    ...{ record_status: "unhealthy", failing_open: true, gates: { count: 2, records } },
  });
  assert.doesNotMatch(JSON.stringify(items), /secret|authorization/);
});

test("the list keeps to its filters, and pages hold all of it once, in order", async () => {
  await using world = await startWorld();
  const zones = ["b.example.", "a.example.", ""];
  for (const zone of zones) {
    for (let index = 0; index < 70; index++) {
      const addresses = [1, 2].map((host) => `10.${zones.indexOf(zone)}.${index}.${host}`);
      gate(world, addresses, { zone, name: `n${String(index).padStart(2, "0")}` });
    }
  }
  const json = { protocol: "tcp", target: "192.0.2.9:5432" };
  for (const name of ["one", "two"]) await world.api.ask("POST", "/healthchecks", { json: { ...json, name } });
  await heard(world, 3 * 70 * 2 + 2);
  for (const host of ["10.0.3.1", "10.1.5.2"]) world.health.fake.turn(keyOf(world, host), "unhealthy");
  await waitFor("the verdicts", 5000, () => world.health.events.length === 2);
  type Item = { kind: string; zone?: string; name: string; value: string; check_id: string };
  const nameOf = ({ kind, zone = "", name, value, check_id }: Item) =>
    kind === "check" ? check_id : `${zone} ${name} ${value}`;
  const all: Item[] = (await world.status()).items;
  assert.equal(all.length, 422);
  assert.deepEqual(
    all.slice(0, 3).map(({ kind }) => kind),
    ["check", "check", "value"],
  );
  const values = all.slice(2).map(nameOf);
  assert.deepEqual(values, values.toSorted());
  for (const limit of [1, 7, 100, 422, 5000]) {
    const paged: Item[] = [];
    let cursor: string | null = "";
    let pages = 0;
    while (cursor !== null && pages < 500) {
      const page: { items: Item[]; next_cursor: string | null } = await world.status(
        `?limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      assert.ok(page.items.length <= limit && page.items.length > 0);
      paged.push(...page.items);
      cursor = page.next_cursor;
      pages += 1;
    }
    assert.deepEqual(paged.map(nameOf), all.map(nameOf), `limit ${limit}`);
    assert.equal(pages, Math.ceil(422 / limit));
  }
  const counts = {
    "?kind=check": 2,
    "?kind=value": 420,
    "?state=unhealthy": 2,
    "?state=healthy": 0,
    "?state=unhealthy&zone=a.example": 1,
    "?zone=B.Example.": 140,
    "?zone=c.example.": 0,
    "?zone=a..example": 0,
    "?kind=check&zone=a.example.": 0,
    "?record_id=rec_a.example.n07": 2,
    "?record_id=rec_none": 0,
  };
  for (const [query, count] of Object.entries(counts)) {
    assert.equal((await world.status(query)).items.length, count, query);
  }
});

test("a page goes on where the one before has ended, though what it ended with is gone", async () => {
  await using world = await startWorld();
  for (const name of ["a", "b", "c"]) gate(world, ["192.0.2.1", "192.0.2.2"], { name });
  const { next_cursor } = await world.status("?limit=3");
  world.health.gates.ungate("corp.", "b", "A");
  const { items } = await world.status(`?cursor=${next_cursor}`);
  assert.deepEqual(
    items.map(({ name, value }: { name: string; value: string }) => `${name} ${value}`),
    ["c 192.0.2.1", "c 192.0.2.2"],
  );
});

test("a health thread that does not answer leaves what is known, marked as stale", async () => {
  await using world = await startWorld();
  for (let index = 0; index < 250; index++) gate(world, [`10.0.0.${index}`], { name: `n${index}` });
  const { body } = await world.api.ask("POST", "/healthchecks", {
    json: { name: "db", protocol: "tcp", target: "192.0.2.9:5432" },
  });
  await heard(world, 251);
  world.health.fake.turn(keyOf(world, "10.0.0.7"), "unhealthy");
  await waitFor("the verdict", 5000, () => world.health.events.length === 1);
  world.health.fake.isSilent = true;
  const { items } = await world.status();
  assert.equal(items.length, 251);
  assert.ok(items.every(({ stale, probes }: { stale: boolean; probes: unknown[] }) => stale && probes.length === 0));
  const known = items.filter(({ state }: { state: string }) => state === "unhealthy");
  assert.deepEqual([known.length, known[0].value, known[0].failing_open], [1, "10.0.0.7", true]);
  const check = await world.api.ask("GET", `/healthchecks/${body.id}/status`);
  assert.deepEqual([check.status, check.body.state, check.body.stale], [200, "unknown", true]);
});

test("the status of a check follows it from its creation to its end", async () => {
  await using world = await startWorld();
  const { api, health } = world;
  const json = { name: "billing", protocol: "https", target: "App.Example:8443", http_config: { path: "/up" } };
  const { id } = (await api.ask("POST", "/healthchecks", { json })).body;
  await heard(world, 1);
  assert.deepEqual(health.fake.specs.get(id), {
    ...{ key: id, slot: 0, protocol: "https", host: "app.example.", port: 8443, path: "/up" },
    ...{ http: { path: "/up" }, intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 },
  });
  health.fake.turn(id, "healthy");
  health.fake.turn(id, "unhealthy");
  await waitFor("the verdict", 5000, () => health.events.length === 1);
  assert.deepEqual(health.events, [
    {
      ...{ type: "health.check_transition", subject: id },
      data: {
        ...{ state: "unhealthy", previous: "healthy", name: "billing", protocol: "https" },
        target: "app.example:8443",
      },
    },
  ]);
  const read = await api.ask("GET", `/healthchecks/${id}/status`, { as: "readonly" });
  assert.deepEqual(
    [read.status, read.body.node_id, read.body.check_id, read.body.check_name, read.body.state, read.body.target],
    [200, "test-node", id, "billing", "unhealthy", "app.example:8443"],
  );
  // A new name is no other probe; another interval is.
  const before = health.fake.heard.length;
  await api.ask("PUT", `/healthchecks/${id}`, { json: { name: "billing system" } });
  assert.equal((await api.ask("GET", `/healthchecks/${id}/status`)).body.check_name, "billing system");
  const said = health.fake.heard.slice(before).filter(({ kind }) => kind === "probes");
  assert.deepEqual(said, []);
  await api.ask("PUT", `/healthchecks/${id}`, { json: { interval_seconds: 60 } });
  await waitFor("the new interval", 5000, () => health.fake.specs.get(id)?.intervalMs === 60_000);
  await api.ask("DELETE", `/healthchecks/${id}`);
  await heard(world, 0);
  assert.equal((await api.ask("GET", `/healthchecks/${id}/status`)).status, 404);
  assert.deepEqual((await world.status()).items, []);
});

test("a script check is not probed by a node whose configuration has no scripts, and says so", async () => {
  await using world = await startWorld();
  const json = { name: "script", protocol: "script", script_config: { command: "/bin/true", args: ["an argument"] } };
  const { id } = (await world.api.ask("POST", "/healthchecks", { json })).body;
  const { body, text } = await world.api.ask("GET", `/healthchecks/${id}/status`);
  assert.deepEqual([body.probed, body.state, body.stale], [false, "unknown", false]);
  assert.doesNotMatch(text, /argument/);
  assert.equal(world.health.fake.specs.size, 0);
});

test("what is no question is refused, and names what is wrong with it", async () => {
  await using world = await startWorld();
  gate(world, ["192.0.2.1"]);
  const cursor = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString("base64url");
  for (const [query, pointer] of [
    ["?state=sick", "?state"],
    ["?kind=record", "?kind"],
    ["?limit=0", "?limit"],
    ["?limit=5001", "?limit"],
    ["?zone=", "?zone"],
    [`?zone=${"a".repeat(2000)}`, "?zone"],
    ["?record_id=", "?record_id"],
    ["?stat=healthy", "?stat"],
    ["?cursor=%00", "?cursor"],
    [`?cursor=${cursor(["zone"])}`, "?cursor"],
    [`?cursor=${cursor(["value", "corp.", "www A"])}`, "?cursor"],
    [`?cursor=${cursor(["value", "corp.", "www A", "-1"])}`, "?cursor"],
    [`?cursor=${cursor(["check", "chk_a", "b"])}`, "?cursor"],
  ] as const) {
    const { status, body } = await world.api.ask("GET", `/health/status${query}`, { as: "readonly" });
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], query);
  }
  assert.equal((await world.api.ask("GET", "/health/status", { as: null })).status, 401);
  assert.equal((await world.api.ask("GET", "/healthchecks/chk_none/status")).status, 404);
  assert.equal((await world.api.ask("GET", "/healthchecks/%00/status")).status, 404);
});

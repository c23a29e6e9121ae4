import assert from "node:assert/strict";
import test from "node:test";
import { type HealthLab, openHealthLab } from "../../tests/support/health-plane.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { editOf } from "../../tests/support/store-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { HEALTH_WORD } from "../image/health.ts";
import { createSharedImage } from "../image/shared.ts";
import { openImageWriter } from "../image/writer.ts";
import type { HealthCheckBody } from "../model/objects.ts";
import type { RecordCreate } from "../model/record.ts";
import { openStorePublisher } from "../publish/store-publisher.ts";
import { HEALTH_CHECK_SERIES_MAX, HEALTH_VALUE_SERIES_MAX } from "./limits.ts";

function check(id: string, given: Partial<HealthCheckBody> = {}): HealthCheckBody {
  return {
    ...{ id, name: `name of ${id}`, protocol: "tcp", target: "192.0.2.9:5432" },
    ...{ interval_seconds: 15, timeout_seconds: 5, failure_threshold: 2 },
    ...given,
  };
}

function gate({ gates }: HealthLab, name: string, of: readonly string[]): readonly number[] {
  return gates.gate({
    ...{ zone: "corp.", name, type: "A", id: `rec_${name}`, method: undefined },
    template: { protocol: "tcp", port: 80 },
    values: of.map((value) => ({ value })),
  });
}

/** What was said, but for questions. */
const kinds = ({ fake }: HealthLab) =>
  fake.heard
    .splice(0)
    .map(({ kind }) => kind)
    .filter((kind) => !kind.startsWith("ask"));
const probes = (lab: HealthLab, count: number) => waitFor(`${count} probes`, 5000, () => lab.fake.specs.size === count);

test("a control thread names everything between begin and complete, the stored checks among it", async () => {
  await using temporary = await temporaryStore();
  await temporary.store.write((tx) => tx.put("healthcheck", check("chk_one")));
  using lab = openHealthLab(temporary.store);
  gate(lab, "www", ["192.0.2.1"]);
  lab.gates.settle();
  await lab.published();
  assert.deepEqual(kinds(lab), ["begin", "policy", "probes", "complete"]);
  assert.equal(lab.fake.specs.size, 2);
  // A health thread that takes over is told the same, and what came later.
  gate(lab, "api", ["192.0.2.2"]);
  await temporary.store.write((tx) => tx.put("healthcheck", check("chk_two")));
  lab.fake.say({ kind: "ready" });
  await waitFor("the end of it", 5000, () => lab.fake.heard.some(({ kind }) => kind === "complete"));
  const said = kinds(lab);
  assert.deepEqual(said.slice(said.indexOf("begin")), ["begin", "policy", "probes", "complete"]);
  assert.equal(lab.fake.specs.size, 4);
});

test("where a zone cannot be published at the start, its probes go on and no other has their slots", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const shared = createSharedImage(1);
  const word = new Int32Array(shared.health);
  const template = { protocol: "tcp" as const, port: 80 };
  const gated = (name: string, value: string) =>
    store.write((tx) => {
      const given: RecordCreate = { name, type: "A", values: [{ value }], health_check_template: template };
      editOf(tx).record("corp.", given);
    });
  await store.write((tx) => {
    editOf(tx).zone({ name: "corp." });
  });
  await gated("old", "192.0.2.1");
  const open = (lab: HealthLab, serialOf: typeof store.serialOf) =>
    openStorePublisher({
      store: { ...store, serialOf },
      writer: openImageWriter(shared),
      log: () => undefined,
      gates: lab.gates,
    });
  {
    using lab = openHealthLab(store, { shared });
    using publisher = open(lab, store.serialOf);
    await publisher.start();
  }
  // Nobody publishes this change: its zone fails when the next control thread starts.
  await gated("old", "192.0.2.2");
  using lab = openHealthLab(store, { shared });
  let fails = true;
  using publisher = open(lab, (zone) => {
    if (fails) throw new Error("out of reach");
    return store.serialOf(zone);
  });
  await publisher.start();
  await lab.published();
  assert.equal(publisher.stats().failedZones, 1);
  const slots = [1, 2, 3].map((slot) => word[HEALTH_WORD.KEY_HIGH + slot] !== 0);
  assert.equal(slots[0], true, "192.0.2.1 answers by its slot still");
  assert.equal(kinds(lab).includes("complete"), false);
  fails = false;
  await gated("new", "192.0.2.3");
  await publisher.settled();
  assert.equal(publisher.stats().failedZones, 0);
  assert.equal(word[HEALTH_WORD.KEY_HIGH + 1], 0);
  assert.equal(kinds(lab).at(-1), "complete");
  assert.deepEqual([...lab.fake.specs.values()].map(({ host }) => host).toSorted(), ["192.0.2.2", "192.0.2.3"]);
});

test("the policy is that of the settings, from the start and after each change", async () => {
  await using temporary = await temporaryStore();
  using lab = openHealthLab(temporary.store);
  const policies = () => lab.fake.heard.splice(0).flatMap((said) => (said.kind === "policy" ? [said.policy] : []));
  assert.deepEqual(policies(), [{ allowInsecureAuthenticatedProbes: false, managedIdentityHosts: [] }]);
  const settings = { allow_insecure_authenticated_probes: true, managed_identity_hosts: ["api.example"] };
  await temporary.store.write((tx) => tx.put("config", { name: "health-probe-policy", settings }));
  assert.deepEqual(policies(), [{ allowInsecureAuthenticatedProbes: true, managedIdentityHosts: ["api.example"] }]);
  await temporary.store.write((tx) => tx.put("config", { name: "cache", settings: {} }));
  assert.deepEqual(policies(), []);
});

test("a check that was unhealthy before the restart is no event; what becomes of it is", async () => {
  await using temporary = await temporaryStore();
  await temporary.store.write((tx) => tx.put("healthcheck", check("chk_one")));
  using lab = openHealthLab(temporary.store);
  await probes(lab, 1);
  const { fake, events } = lab;
  fake.say({ kind: "known", states: [{ key: "chk_one", state: "unhealthy", sinceMs: 1 }] });
  fake.set("chk_one", { state: "unhealthy" });
  fake.turn("chk_one", "healthy");
  await waitFor("the event", 5000, () => events.length > 0);
  assert.deepEqual(
    events.map(({ subject, data }) => [subject, data.previous, data.state]),
    [["chk_one", "unhealthy", "healthy"]],
  );
});

test("an unknown check that turns out healthy is no event, one that turns out unhealthy is", async () => {
  await using temporary = await temporaryStore();
  await temporary.store.write((tx) => {
    tx.put("healthcheck", check("chk_good"));
    tx.put("healthcheck", check("chk_bad"));
  });
  using lab = openHealthLab(temporary.store);
  await probes(lab, 2);
  lab.fake.turn("chk_good", "healthy");
  lab.fake.turn("chk_bad", "unhealthy");
  await waitFor("the event", 5000, () => lab.events.length > 0);
  assert.deepEqual(
    lab.events.map(({ subject }) => subject),
    ["chk_bad"],
  );
});

test("a check that asks another thing begins unjudged, and who heard that it was unhealthy hears that it is not", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) => tx.put("healthcheck", check("chk_one")));
  using lab = openHealthLab(store);
  const { fake, events } = lab;
  await probes(lab, 1);
  fake.turn("chk_one", "unhealthy");
  await waitFor("the event", 5000, () => events.length === 1);
  await store.write((tx) => tx.put("healthcheck", check("chk_one", { interval_seconds: 30 })));
  assert.equal((await lab.view.check("chk_one"))?.state, "unhealthy", "it asks the same");
  await store.write((tx) => tx.put("healthcheck", check("chk_one", { target: "192.0.2.10:5432" })));
  const text = await lab.registry.metrics();
  assert.ok(text.includes('svc_health_check_status{id="chk_one",name="name of chk_one"} -1\n'));
  fake.set("chk_one", { state: "unknown" });
  fake.turn("chk_one", "healthy");
  await waitFor("the event", 5000, () => events.length === 2);
  assert.deepEqual(
    events.map(({ data }) => [data.previous, data.state]),
    [
      ["unknown", "unhealthy"],
      ["unhealthy", "healthy"],
    ],
  );
});

test("scripts are started where the configuration has them, and checks follow every write", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  const script = { protocol: "script", script_config: { command: "/bin/true", timeout_seconds: 2 } } as const;
  await store.write((tx) => tx.put("healthcheck", check("chk_script", script)));
  using without = openHealthLab(store);
  using lab = openHealthLab(store, { areScriptsEnabled: true });
  await probes(lab, 1);
  assert.equal(without.fake.specs.size, 0);
  const spec = lab.fake.specs.get("chk_script");
  assert.deepEqual([spec?.protocol, spec?.timeoutMs, spec?.script], ["script", 2000, script.script_config]);
  await store.write((tx) => tx.move("healthcheck", ["name of chk_script"], check("chk_script", { name: "renamed" })));
  await waitFor("the other protocol", 5000, () => lab.fake.specs.get("chk_script")?.protocol === "tcp");
  await store.write((tx) => tx.delete("healthcheck", ["renamed"]));
  await probes(lab, 0);
});

test("the metrics have every state, the bounds of their series, and answer where the health thread does not", async () => {
  await using temporary = await temporaryStore();
  await temporary.store.write((tx) => {
    for (let index = 0; index < HEALTH_CHECK_SERIES_MAX + 3; index++) tx.put("healthcheck", check(`chk_${index}`));
  });
  using lab = openHealthLab(temporary.store);
  const values = HEALTH_VALUE_SERIES_MAX + 4;
  for (let index = 0; index < values / 2; index++) gate(lab, `n${index}`, ["192.0.2.1", "192.0.2.2"]);
  await probes(lab, HEALTH_CHECK_SERIES_MAX + 3 + 2);
  lab.fake.turn("chk_0", "healthy");
  lab.fake.turn("chk_1", "unhealthy");
  for (const [key, { host }] of lab.fake.specs) if (host === "192.0.2.1") lab.fake.turn(key, "unhealthy");
  await waitFor("the verdicts", 5000, () => lab.events.length === 1 + values / 2);
  const text = await lab.registry.metrics();
  const lines = text.split("\n").filter((line) => line.startsWith("svc_health"));
  assert.ok(lines[0]?.startsWith("svc_health_check_status{"), "it comes first");
  const count = (start: string) => lines.filter((line) => line.startsWith(start)).length;
  assert.equal(count("svc_health_check_status{"), HEALTH_CHECK_SERIES_MAX);
  assert.equal(count("svc_health_value_status{"), HEALTH_VALUE_SERIES_MAX);
  for (const line of [
    'svc_health_check_status{id="chk_0",name="name of chk_0"} 1',
    'svc_health_check_status{id="chk_1",name="name of chk_1"} 0',
    'svc_health_check_status{id="chk_2",name="name of chk_2"} -1',
    'svc_health_value_status{zone="corp.",name="n0",type="A",value="192.0.2.1"} 0',
    "svc_health_series_left_out 7",
    `svc_health_records{status="degraded"} ${values / 2}`,
    'svc_health_records{status="healthy"} 0',
    "svc_health_records_failing_open 0",
    "svc_health_slots_missing 0",
    'svc_health_probes{state="unhealthy"} 2',
    'svc_health_probe_failures_total{error="refused"} 2',
    'svc_health_probe_failures_total{error="tls_expired"} 0',
    "svc_health_probes_done_total 7",
    "svc_health_probes_stale 0",
    'svc_health_probe_lateness_seconds{quantile="0.99"} 0.012',
    'svc_health_probe_lateness_seconds{quantile="1"} 0.03',
  ]) {
    assert.ok(lines.includes(line), line);
  }
  lab.fake.isSilent = true;
  const later = await lab.registry.metrics();
  assert.ok(later.includes("svc_health_probes_done_total 7"), "the last figures stand");
});

test("SRV values of one host have a series for each port", async () => {
  await using temporary = await temporaryStore();
  using lab = openHealthLab(temporary.store);
  lab.gates.gate({
    ...{ zone: "corp.", name: "_api._tcp", type: "SRV", id: "rec_api", method: undefined },
    template: { protocol: "tcp" },
    values: [8001, 8002].map((port) => ({ value: "app.corp.", port })),
  });
  await probes(lab, 2);
  for (const [key, { port }] of lab.fake.specs) lab.fake.turn(key, port === 8001 ? "unhealthy" : "healthy");
  await waitFor("the verdicts", 5000, () =>
    [...lab.gates.book.probes.values()].every(({ state }) => state !== "unknown"),
  );
  const text = await lab.registry.metrics();
  const labels = 'zone="corp.",name="_api._tcp",type="SRV"';
  for (const series of [`${labels},value="app.corp.:8001"} 0`, `${labels},value="app.corp.:8002"} 1`]) {
    assert.ok(text.includes(`svc_health_value_status{${series}\n`), series);
  }
});

test("a value with quotes and line breaks in it is one label", async () => {
  await using temporary = await temporaryStore();
  await temporary.store.write((tx) => tx.put("healthcheck", check("chk_x", { name: 'a "quoted\\\nname' })));
  using lab = openHealthLab(temporary.store);
  const text = await lab.registry.metrics();
  assert.ok(text.includes('svc_health_check_status{id="chk_x",name="a \\"quoted\\\\\\nname"} -1\n'));
});

/** /explain of a real node, beside what clients get from it and what its probes know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "./notify-world.ts";
import {
  httpTemplate,
  type Steering,
  startBackends,
  startSteering,
  untilAnswered,
  untilJudged,
} from "./steer-world.ts";

const [LOCAL, OTHER, AWAY] = ["127.0.6.1", "127.0.6.2", "127.0.6.3"] as const;

type Candidate = {
  readonly value: string;
  readonly state: string;
  readonly since?: string;
  readonly dropped_by?: string;
  readonly answered: boolean;
};

async function explain({ api }: Steering, query: string) {
  const { status, body } = await api.ask("GET", `/explain?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  const selection = body.reasons.findLast(({ kind }: { readonly kind: string }) => kind === "selection");
  const candidates: readonly Candidate[] = selection?.candidates ?? [];
  return { body, selection, candidates };
}

async function queriesCounted({ node }: Steering): Promise<number> {
  const text = await (await node.get("/metrics")).text();
  const lines = text.split("\n").filter((line) => line.startsWith("svc_dns_queries_total{"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

test("what is explained is what clients get, with the health that probes have found", async () => {
  await using backends = await startBackends(LOCAL, OTHER, AWAY);
  await using world = await startSteering({ env: { SVC_NODE_REGION: "eu" } });
  await create(world.api, "/subnet-mappings", { subnet: "127.0.9.0/24", region_id: "us" });
  const id = await world.record({
    name: "shop",
    type: "A",
    values: [
      { value: LOCAL, region: "eu" },
      { value: OTHER, region: "eu" },
      { value: AWAY, region: "us" },
    ],
    lb_policy: { method: "geo-failover", client_affinity: true },
    health_check_template: httpTemplate(backends.port),
  });
  await untilJudged(world, id, { [LOCAL]: "healthy", [OTHER]: "healthy", [AWAY]: "healthy" });
  for (const from of ["127.0.0.1", "127.0.9.7"]) {
    const { body, candidates } = await explain(world, `name=shop.steer.test&client=${from}`);
    const answered = candidates.filter((each) => each.answered).map(({ value }) => value);
    assert.deepEqual(answered, await world.ask("shop", { from }));
    assert.deepEqual(body.answer.answer, [`shop.steer.test. 5 IN A ${answered[0]}`]);
  }

  await backends.at(LOCAL).kill();
  await untilAnswered(world, "shop", [OTHER]);
  const items = await untilJudged(world, id, { [LOCAL]: "unhealthy" });
  const { selection, candidates } = await explain(world, "name=shop.steer.test.");
  assert.deepEqual(
    candidates.map(({ state, dropped_by }) => [state, dropped_by]),
    [
      ["unhealthy", "unhealthy"],
      ["healthy", undefined],
      ["healthy", "other_region"],
    ],
  );
  const sinceOf = new Map(items.map(({ value, since }) => [value, since]));
  for (const { value, since } of candidates) assert.equal(since, sinceOf.get(value), value);
  assert.deepEqual([selection.record_id, selection.client], [id, { region: "eu", source: "node" }]);
  assert.ok(Date.parse(selection.affinity.redrawn_at) > Date.now() - 1000);

  for (const address of [OTHER, AWAY]) await backends.at(address).kill();
  await untilJudged(world, id, { [LOCAL]: "unhealthy", [OTHER]: "unhealthy", [AWAY]: "unhealthy" });
  const open = await explain(world, "name=shop.steer.test.");
  assert.equal(open.selection.failing_open, true);
  const answered = open.candidates.filter((each) => each.answered).map(({ value }) => value);
  assert.deepEqual(answered, await world.ask("shop"));
});

test("explanations take no turn from clients and are counted as no queries", async () => {
  await using world = await startSteering();
  const values = [LOCAL, OTHER, AWAY].map((value) => ({ value }));
  await world.record({ name: "turns", type: "A", values, lb_policy: { method: "round-robin" } });
  const first: string[] = [];
  const before = await queriesCounted(world);
  for (let turn = 0; turn < 6; turn++) {
    const told: string[] = [];
    for (let times = 0; times < 5; times++) {
      told.push(...(await explain(world, "name=turns.steer.test.")).body.answer.answer.slice(0, 1));
    }
    const [value = ""] = await world.ask("turns");
    assert.deepEqual(told, Array(5).fill(`turns.steer.test. 5 IN A ${value}`));
    first.push(value);
  }
  assert.deepEqual(first.slice(0, 3), first.slice(3));
  assert.equal(new Set(first).size, 3);
  assert.equal((await queriesCounted(world)) - before, 6);
});

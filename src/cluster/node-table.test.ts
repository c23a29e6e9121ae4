import assert from "node:assert/strict";
import { test } from "node:test";
import { seededChance } from "../../tests/support/chance.ts";
import { simulatedEndpoint } from "../../tests/support/cluster-network.ts";
import { createNodeTable, type Node } from "./node-table.ts";
import { MEMBERS_MAX } from "./settings.ts";

function node(name: string, state: Node["state"] = "alive", sinceMs = 0): Node {
  const endpoint = simulatedEndpoint(1);
  const meta = new Uint8Array(0);
  return { name, endpoint, meta, versions: [1, 5, 2, 2, 5, 4], incarnation: 1, state, sinceMs, suspicion: undefined };
}

function tableOf(self: string, ...names: string[]) {
  const chance = seededChance(1);
  const table = createNodeTable(node(self), () => chance.below(1 << 20) / (1 << 20));
  for (const name of names) table.add(node(name));
  return table;
}

test("the successor is the next live name, and after the last the first", () => {
  const table = tableOf("c", "a", "b", "d", "e");
  assert.equal(table.successor()?.name, "d");
  for (const name of ["d", "e"]) {
    const gone = table.get(name);
    if (gone !== undefined) gone.state = "dead";
  }
  table.changed();
  assert.equal(table.successor()?.name, "a");
  assert.equal(tableOf("c").successor(), undefined);
});

test("a round has every live member but the successor once", () => {
  const table = tableOf("a", "b", "c", "d", "e");
  for (let rounds = 0; rounds < 5; rounds++) {
    const round = Array.from({ length: 3 }, () => table.nextInRound()?.name).sort();
    if (rounds > 0) assert.deepEqual(round, ["c", "d", "e"]);
  }
  assert.equal(tableOf("a", "b").nextInRound(), undefined);
});

test("some of them are live, all different, and not who is omitted", () => {
  const table = tableOf("a", "b", "c", "d", "e");
  const dead = table.get("e");
  if (dead !== undefined) dead.state = "dead";
  table.changed();
  for (let times = 0; times < 20; times++) {
    const names = table.some(3, "b").map(({ name }) => name);
    assert.deepEqual(names.sort(), ["c", "d"]);
  }
});

test("who has been dead the longest makes room for a new member; nobody who is alive does", () => {
  const table = tableOf("self");
  for (let at = 1; at < MEMBERS_MAX; at++) table.add(node(`n${at}`, at <= 2 ? "dead" : "alive", at));
  assert.equal(table.add(node("new-1")), true);
  assert.equal(table.get("n1"), undefined);
  assert.equal(table.add(node("new-2")), true);
  assert.equal(table.get("n2"), undefined);
  assert.equal(table.add(node("new-3")), false);
  assert.equal(table.count(), MEMBERS_MAX);
});

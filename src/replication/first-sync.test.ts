import assert from "node:assert/strict";
import test from "node:test";
import type { RawItem } from "../store/raw-items.ts";
import { takeEverything } from "./first-sync.ts";

const activation: RawItem = { item: "activation", zone: "corp.", life: "", state: "active" };
const object = (kind: "record" | "forwarder" | "stub-zone", key: string): RawItem => ({
  item: "object",
  kind,
  key: [key],
  envelope: { stamp: "", born: "", life: "", renames: 0, seen: {}, id: "", content: { kind: "body", body: {} } },
});
const PAGES = [
  { items: [activation], rows: [], cursor: "1" },
  { items: [object("record", "a")], rows: ["row"], cursor: "2" },
  { items: [object("forwarder", "f"), object("stub-zone", "s")], rows: [], cursor: "3" },
  { items: [object("record", "z")], rows: [], cursor: null },
];
const nameOf = (item: RawItem) => (item.item === "object" ? (item.key[0] ?? "") : item.item);

test("zones become active behind the last page, and names are forwarded when these answer; a fault loses neither", async () => {
  const said: string[] = [];
  const progress = { cursor: null as string | null, activations: [], routes: [] };
  let failing: string | undefined = "2";
  const take = () =>
    takeEverything({
      progress,
      page: (cursor) => {
        if (cursor === failing) return Promise.reject(new Error("the peer has gone"));
        return Promise.resolve(PAGES[Number(cursor)] ?? { items: [], rows: [], cursor: null });
      },
      apply: (items, { partial, rows = [] }) => {
        const names = [...items.map(nameOf), ...rows].join();
        if (names !== "") said.push(`${partial === true ? "partial " : ""}${names}`);
        return Promise.resolve();
      },
      published: () => {
        said.push("published");
        return Promise.resolve();
      },
    });
  await assert.rejects(take, /the peer has gone/);
  failing = undefined;
  await take();
  assert.deepEqual(said, ["partial activation", "partial a,row", "partial z", "activation", "published", "f,s"]);
  assert.deepEqual(progress, { cursor: null, activations: [], routes: [] });
});

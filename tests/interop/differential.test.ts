import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { peers, requireProgram } from "../support/peers.ts";
import { type ServerProgram, startServer } from "../support/server.ts";
import { signpost } from "../support/signpost.ts";
import { askAll } from "./ask.ts";
import type { Aspects } from "./aspects.ts";
import { differencesOf, differenceText, explain } from "./compare.ts";
import { EXPECTATIONS } from "./expectations.ts";
import { KNOWN_DIFFERENCES } from "./known-differences.ts";
import { inquiries, inquiryText, ZONES } from "./zone-questions.ts";

const COMPARED = [peers.nsd, peers.knot, peers.bind];
/** Enough to see what kinds of difference there are. */
const SHOWN = 25;

const all = inquiries();

async function ask(program: ServerProgram): Promise<Aspects[]> {
  await using server = await startServer(program, { zones: ZONES });
  return await askAll(server, all);
}

function checkExpectations(ours: readonly Aspects[]): void {
  for (const { id, applies, holds } of EXPECTATIONS) {
    const concerned = all.flatMap((inquiry, index) => (applies(inquiry, ours[index]!) ? [index] : []));
    assert.ok(concerned.length > 0, `${id}: no answer that it speaks about`);
    const broken = concerned.filter((index) => !holds(all[index]!, ours[index]!));
    const shown = broken.slice(0, SHOWN).map((index) => `${inquiryText(all[index]!)}: ${JSON.stringify(ours[index])}`);
    assert.equal(broken.length, 0, `${id}: broken ${broken.length} times, such as\n${shown.join("\n")}`);
  }
}

async function checkDifferences(t: TestContext, ours: readonly Aspects[]): Promise<void> {
  const theirs: [string, Aspects[]][] = [];
  for (const peer of COMPARED) theirs.push([peer.name, await ask(peer)]);
  const differences = all.flatMap((inquiry, index) =>
    differencesOf({
      inquiry,
      ours: ours[index]!,
      peers: Object.fromEntries(theirs.map(([name, aspects]) => [name, aspects[index]!])),
    }),
  );
  const { unexplained, seen } = explain(differences, KNOWN_DIFFERENCES);
  t.diagnostic(`${all.length} inquiries, ${differences.length - unexplained.length} known differences`);
  const shown = unexplained.slice(0, SHOWN).map(differenceText).join("\n");
  assert.equal(unexplained.length, 0, `${unexplained.length} unexplained differences, such as\n${shown}`);
  const unseen = [...seen].filter(([, count]) => count === 0).map(([id]) => id);
  assert.deepEqual(unseen, [], "known differences that did not show");
}

test("docs/differences.md gives the reason of every known difference", () => {
  const page = readFileSync(fileURLToPath(new URL("../../docs/differences.md", import.meta.url)), "utf8");
  const headings = [...page.matchAll(/^### `([a-z0-9-]+)`$/gm)].map(([, id]) => id);
  assert.deepEqual(
    headings,
    KNOWN_DIFFERENCES.map(({ id }) => id),
  );
});

test("answers keep our rules, and are those of NSD, Knot and BIND but for the known differences", {
  timeout: 600_000,
}, async (t) => {
  const ours = await ask(signpost);
  checkExpectations(ours);
  if (COMPARED.some(({ command }) => requireProgram(t, command) === undefined)) return;
  await checkDifferences(t, ours);
});

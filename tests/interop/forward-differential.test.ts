/** The same questions through unbound, through BIND and through us, with the same upstream: NSD. */
import assert from "node:assert/strict";
import test from "node:test";
import { forwardTo, startForwarding } from "../scenarios/forward-world.ts";
import { forwarders, startForwarder } from "../support/forwarders.ts";
import { peers, requireProgram } from "../support/peers.ts";
import { startServer } from "../support/server.ts";
import { askAll } from "./ask.ts";
import type { Aspects } from "./aspects.ts";
import { differencesOf, differenceText, explain, type KnownDifference } from "./compare.ts";
import { existingNames, type Inquiry, missingNames, ZONES } from "./zone-questions.ts";

const TYPES = [1, 2, 5, 6, 12, 15, 16, 28, 33, 43, 65, 257, 65400];
const MISSING_TYPES = [1, 15, 28];
const SHOWN = 25;
const RECURSION_DESIRED = 0x0100;

function inquiries(): readonly Inquiry[] {
  const existing = existingNames();
  const recursive = (name: string, type: number): Inquiry => ({
    name,
    type,
    transport: "udp",
    flags: RECURSION_DESIRED,
    edns: { udpSize: 1232 },
  });
  return [
    ...existing.flatMap((name) => TYPES.map((type) => recursive(name, type))),
    ...missingNames(existing).flatMap((name) => MISSING_TYPES.map((type) => recursive(name, type))),
    ...existing.map((name): Inquiry => ({ ...recursive(name, 16), transport: "tcp" })),
  ];
}

/** How long an answer has lain in a cache differs; so does what a forwarder adds beside the answer. */
function comparable(aspects: Aspects): Aspects {
  const withoutTtls = (text: string) => text.replaceAll(/^(\S+) \d+ CLASS/gm, "$1 CLASS");
  const isNegative = !aspects.verdict.includes("CLASS") || aspects.verdict.startsWith("rcode 3");
  return {
    ...aspects,
    verdict: withoutTtls(aspects.verdict),
    authority: isNegative ? withoutTtls(aspects.authority) : "",
    additional: "",
  };
}

/** What is meant to differ from both. */
const KNOWN: readonly KnownDifference[] = [
  {
    // Where the target of an alias cannot be resolved, ours says SERVFAIL as they do, and shows the alias.
    id: "the alias before a failure",
    aspects: ["verdict"],
    explains: ({ ours, peers: theirs }) =>
      /^rcode 2\n.* CLASS1 TYPE5 \S+$/.test(ours.verdict) &&
      Object.values(theirs).some(({ verdict }) => verdict.trim() === "rcode 2"),
  },
  {
    // Aliases that lead in a circle are a failure to all; BIND shows the circle, unbound is silent, ours shows nothing.
    id: "a circle of aliases is not shown",
    aspects: ["verdict"],
    explains: ({ ours, peers: theirs }) =>
      ours.verdict.trim() === "rcode 2" && Object.values(theirs).some(({ verdict }) => verdict.startsWith("rcode 2\n")),
  },
];

test("forwarded answers are those of unbound or BIND with the same upstream", { timeout: 300_000 }, async (t) => {
  for (const { command } of [peers.nsd, forwarders.unbound, forwarders.bind])
    if (requireProgram(t, command) === undefined) return;
  const all = inquiries();
  await using upstream = await startServer(peers.nsd, { zones: ZONES });
  await using world = await startForwarding({ forwards: false });
  await forwardTo(world, [`127.0.0.1:${upstream.port}`]);
  const ours = (await askAll({ name: "signpost", port: world.node.dns[0]?.port ?? 0 }, all)).map(comparable);
  const theirs = new Map<string, Aspects[]>();
  for (const program of [forwarders.unbound, forwarders.bind]) {
    const server = await startForwarder(program, upstream.port, "corp.test");
    try {
      theirs.set(program.name, (await askAll(server, all)).map(comparable));
    } finally {
      await server.stop();
    }
  }
  const differences = all.flatMap((inquiry, index) =>
    differencesOf({
      inquiry,
      ours: ours[index]!,
      peers: Object.fromEntries([...theirs].map(([name, aspects]) => [name, aspects[index]!])),
    }),
  );
  const { unexplained } = explain(differences, KNOWN);
  t.diagnostic(`${all.length} questions, ${differences.length - unexplained.length} known differences`);
  const shown = unexplained.slice(0, SHOWN).map(differenceText).join("\n");
  assert.equal(unexplained.length, 0, `${unexplained.length} unexplained differences, such as\n${shown}`);
});

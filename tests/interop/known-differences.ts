import type { KnownDifference } from "./compare.ts";

const TYPE_ANY = 255;
const CLASS_CHAOS = 3;

/** What is meant to differ from all of NSD, Knot and BIND. Each id is a heading of docs/differences.md. */
export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    id: "any-is-minimal",
    aspects: ["verdict", "additional"],
    explains: ({ inquiry, ours }) => inquiry.type === TYPE_ANY && ours.verdict.startsWith("rcode 0 AA\n"),
  },
  {
    id: "chaos-without-node-id",
    aspects: ["verdict"],
    explains: ({ inquiry, ours }) => inquiry.class === CLASS_CHAOS && ours.verdict === "rcode 5\n",
  },
];

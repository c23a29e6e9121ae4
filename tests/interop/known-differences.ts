import type { KnownDifference, Responses } from "./compare.ts";

const TYPE = { TKEY: 249, IXFR: 251, ANY: 255 } as const;
const CLASS_CHAOS = 3;

const NOTIMP = "rcode 4\n";
const REFUSED = "rcode 5\n";

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** Whether ours has all additional records that every peer has. */
function lacksNothing({ ours, peers }: Responses): boolean {
  const own = new Set(lines(ours.additional));
  const [first, ...others] = Object.values(peers).map(({ additional }) => lines(additional));
  const common = (first ?? []).filter((line) => others.every((other) => other.includes(line)));
  return common.every((line) => own.has(line));
}

/** What is meant to differ from all of NSD, Knot and BIND. Each id is a heading of docs/differences.md. */
export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    id: "any-is-minimal",
    aspects: ["verdict", "additional"],
    explains: ({ inquiry, ours }) =>
      inquiry.type === TYPE.ANY && ours.verdict.startsWith("rcode 0 AA\n") && lines(ours.verdict).length > 1,
  },
  {
    id: "chaos-without-node-id",
    aspects: ["verdict"],
    explains: ({ inquiry, ours }) => inquiry.class === CLASS_CHAOS && ours.verdict === REFUSED,
  },
  {
    id: "ixfr-and-tkey-not-implemented",
    aspects: ["verdict"],
    explains: ({ inquiry: { type }, ours }) => (type === TYPE.IXFR || type === TYPE.TKEY) && ours.verdict === NOTIMP,
  },
  {
    id: "additional-as-much-as-fits",
    aspects: ["additional"],
    explains: (responses) =>
      responses.inquiry.name.startsWith("many-mx.") && responses.inquiry.edns !== undefined && lacksNothing(responses),
  },
  {
    id: "chain-into-a-zone-without-cut",
    aspects: ["verdict"],
    explains: ({ inquiry, ours }) =>
      inquiry.name.toLowerCase() === "chain-to-hidden.corp.test." && ours.verdict.startsWith("rcode 3 AA\n"),
  },
  {
    id: "ttl-0-is-the-zones-default",
    aspects: ["verdict"],
    explains: ({ inquiry, ours }) =>
      inquiry.name.toLowerCase() === "zero.corp.test." && ours.verdict.startsWith("rcode 0 AA\nzero.corp.test. 7200 "),
  },
];

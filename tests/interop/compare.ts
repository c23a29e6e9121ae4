import { ASPECTS, type AspectName, type Aspects, SILENCE } from "./aspects.ts";
import { type Inquiry, inquiryText } from "./zone-questions.ts";

/** What the servers said to one inquiry; `peers` by name. */
export type Responses = {
  readonly inquiry: Inquiry;
  readonly ours: Aspects;
  readonly peers: Readonly<Record<string, Aspects>>;
};

/** An aspect in which ours is like none of the peers. */
export type Difference = Responses & { readonly aspect: AspectName };

/** A difference that is meant: docs/differences.md gives the reason under the same id. */
export type KnownDifference = {
  readonly id: string;
  readonly aspects: readonly AspectName[];
  readonly explains: (responses: Responses) => boolean;
};

/**
 * Where the peers differ with each other, ours may be like any of them; else it must be like all of them. A peer that is
 * silent where another answers says nothing: BIND limits the rate of its answers in class CH.
 */
export function differencesOf(responses: Responses): Difference[] {
  const { ours } = responses;
  const all = Object.values(responses.peers);
  const speaking = all.filter(({ verdict }) => verdict !== SILENCE);
  const peers = speaking.length > 0 ? speaking : all;
  const lonely = ASPECTS.filter((aspect) => peers.every((peer) => peer[aspect] !== ours[aspect]));
  return lonely.map((aspect) => ({ ...responses, aspect }));
}

export type Explained = {
  readonly unexplained: readonly Difference[];
  /** How many differences each known difference explains, by its id. */
  readonly seen: ReadonlyMap<string, number>;
};

/** Holds differences against the known ones; each takes the first that explains it. */
export function explain(differences: readonly Difference[], known: readonly KnownDifference[]): Explained {
  const seen = new Map<string, number>(known.map(({ id }) => [id, 0]));
  const unexplained = differences.filter((difference) => {
    const reason = known.find(({ aspects, explains }) => aspects.includes(difference.aspect) && explains(difference));
    if (reason !== undefined) seen.set(reason.id, (seen.get(reason.id) ?? 0) + 1);
    return reason === undefined;
  });
  return { unexplained, seen };
}

function indent(text: string): string {
  return text.replaceAll("\n", "\n      ");
}

/** One difference with what each server said, for a failing test's message. */
export function differenceText({ inquiry, aspect, ours, peers }: Difference): string {
  const lines = [`${inquiryText(inquiry)}: ${aspect}`, `  ours: ${indent(ours[aspect])}`];
  for (const [name, peer] of Object.entries(peers)) lines.push(`  ${name}: ${indent(peer[aspect])}`);
  return lines.join("\n");
}

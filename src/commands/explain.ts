/** What the API asks of whoever explains answers. The composition root supplies it. */
import { ipFromText, ipToText } from "../base/ip.ts";
import { typeFromText } from "../dns/type-names.ts";
import type { EXPLAINED_TYPES, Explanation } from "../model/explanation.ts";
import { anyFullName } from "../model/names.ts";
import { Refusal } from "../model/refusal.ts";

export type ExplainedQuestion = {
  /** Lower-case wire form. */
  readonly name: Uint8Array;
  readonly type: number;
  /** 4 or 16 bytes. */
  readonly client: Uint8Array;
};

/** Tells how this node would answer at this moment. */
export type Explainer = (question: ExplainedQuestion) => Promise<Explanation>;

export type QuestionText = {
  /** With or without its last dot. */
  readonly name: string;
  readonly type?: (typeof EXPLAINED_TYPES)[number];
  /** Left out: whoever asks. */
  readonly client?: string;
};

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

const NO_ADDRESS = "must be an IPv4 or IPv6 address, without a prefix or a port";

/** Throws `invalid_request`. `asker` is the address of whoever asks. */
export function questionFromText({ name, type = "A", client }: QuestionText, asker: string): ExplainedQuestion {
  const read = anyFullName(name);
  if (read.kind === "fault") return refuse("?name", read.detail);
  const address = ipFromText(client ?? asker) ?? refuse("?client", NO_ADDRESS);
  // Queries over IPv4 never come to an IPv6 socket of ours.
  const isMapped = address.length === 16 && MAPPED_PREFIX.every((byte, index) => address[index] === byte);
  if (isMapped) refuse("?client", `must be written as the IPv4 address ${ipToText(address.slice(12))}`);
  return { name: read.wire, type: typeFromText(type) ?? refuse("?type", "is no type"), client: address };
}

function refuse(pointer: string, detail: string): never {
  throw new Refusal("invalid_request", `${pointer}: ${detail}`, [{ pointer, detail }]);
}

import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import type { Aspects } from "./aspects.ts";
import type { Inquiry } from "./zone-questions.ts";

/**
 * What holds for every answer of ours, whatever peers do: where peers differ, being like one of them in each aspect could
 * still make no sense as a whole.
 */
export type Expectation = {
  readonly id: string;
  /** Whether the rule speaks about this answer. */
  readonly applies: (inquiry: Inquiry, ours: Aspects) => boolean;
  readonly holds: (inquiry: Inquiry, ours: Aspects) => boolean;
};

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** The records of the answer section: the verdict without its first line. */
function answerOf({ verdict }: Aspects): string[] {
  return lines(verdict).slice(1);
}

function headOf({ verdict }: Aspects): string {
  return lines(verdict)[0] ?? "";
}

function isOfType(line: string, type: number): boolean {
  return line.split(" ")[3] === `TYPE${type}`;
}

const TYPE_NS = 2;
const TYPE_SOA = 6;
const CLASS_IN = 1;

export const EXPECTATIONS: readonly Expectation[] = [
  {
    id: "the question comes back as it was asked, in its case",
    // What follows the header of another opcode is not for us to read.
    applies: ({ flags = 0 }) => flags >> 11 === 0,
    holds: (inquiry, { question }) => {
      const [asked] = decodeMessage(encodeQuery(inquiry)).questions;
      return question === `${asked?.name} ${asked?.type} ${asked?.class}`;
    },
  },
  {
    id: "RA, AD and Z are never set, RD is copied",
    applies: () => true,
    holds: ({ flags = 0 }, { bits }) => !/ (RA|AD|Z) /.test(bits) && bits.includes(" RD ") === ((flags & 0x0100) !== 0),
  },
  {
    id: "data comes without authority section",
    applies: ({ type }, ours) => ours.truncated === "" && answerOf(ours).some((line) => isOfType(line, type)),
    holds: (_, { authority }) => authority === "",
  },
  {
    id: "a negative answer has the one SOA to cache it by",
    applies: (_, ours) =>
      ours.truncated === "" &&
      (headOf(ours) === "rcode 3 AA" || (headOf(ours) === "rcode 0 AA" && answerOf(ours).length === 0)),
    holds: (_, { authority }) => lines(authority).length === 1 && isOfType(authority, TYPE_SOA),
  },
  {
    id: "a referral has NS records and no answer",
    applies: ({ class: number = CLASS_IN, edns }, ours) =>
      number === CLASS_IN && (edns?.version ?? 0) === 0 && ours.truncated === "" && headOf(ours) === "rcode 0",
    holds: (_, ours) => {
      const authority = lines(ours.authority);
      return authority.length > 0 && authority.every((line) => isOfType(line, TYPE_NS)) && answerOf(ours).length === 0;
    },
  },
  {
    id: "a refusal has no records",
    applies: (_, ours) => ["rcode 1", "rcode 4", "rcode 5", "rcode 16"].includes(headOf(ours)),
    holds: (_, ours) => answerOf(ours).length === 0 && ours.authority === "" && ours.additional === "",
  },
  {
    id: "EDNS is answered with version 0 and only where it was sent",
    applies: () => true,
    holds: ({ edns }, ours) => (edns === undefined ? ours.edns === "none" : ours.edns.startsWith("version 0")),
  },
];

/** Addresses of name servers that a referral named without telling them: asked for like any other name, within bounds. */
import { RRTYPE } from "../dns/codes.ts";
import type { Kept } from "./delegation.ts";
import type { Budget } from "./in-flight.ts";
import {
  LEARNED_FAILURE_SECONDS,
  LEARNED_SECONDS_MAX,
  LEARNED_SECONDS_MIN,
  NAME_SERVER_ALIASES_MAX,
} from "./resolver-limits.ts";
import { foldName, nameText } from "./resolver-names.ts";
import type { Answer } from "./response.ts";

export type NameServerTools = {
  readonly known: Kept<readonly Uint8Array[]>;
  /** Resolves a question by its own route; undefined where none leads to the name. Calls back later. */
  readonly ask: (name: Uint8Array, type: number, onDone: (answer: Answer | undefined) => void) => void;
};

/** IPv4 addresses, or else IPv6 ones. `onDone` is called once, later; what is returned ends it without a call. */
export function findNameServer(
  name: Uint8Array,
  budget: Pick<Budget, "lookups">,
  tools: NameServerTools,
  onDone: (addresses: readonly Uint8Array[]) => void,
): (() => void) | undefined {
  let isEnded = false;
  const end = (addresses: readonly Uint8Array[]): void => {
    if (!isEnded) onDone(addresses);
    isEnded = true;
  };
  const key = nameText(name);
  const keep = ({ addresses, seconds }: Found): void => {
    tools.known.put(key, addresses, addresses.length > 0 ? seconds : LEARNED_FAILURE_SECONDS);
    end(addresses);
  };
  const known = tools.known.get(key);
  if (known !== undefined) queueMicrotask(() => end(known));
  else {
    if (budget.lookups <= 0) return undefined;
    budget.lookups--;
    lookUp(name, RRTYPE.A, tools, (four) => {
      if (isEnded) return;
      if (four.addresses.length > 0) keep(four);
      else lookUp(name, RRTYPE.AAAA, tools, keep);
    });
  }
  return () => {
    isEnded = true;
  };
}

type Found = { readonly addresses: readonly Uint8Array[]; readonly seconds: number };

function lookUp(
  name: Uint8Array,
  type: number,
  tools: NameServerTools,
  onDone: (found: Found) => void,
  aliases = 0,
): void {
  tools.ask(name, type, (answer) => {
    const addresses = answer?.answers.filter((record) => record.type === type).map(({ rdata }) => rdata) ?? [];
    const target = answer?.isOpen === true ? answer.followed.at(-1)?.rdata : undefined;
    if (target !== undefined && aliases < NAME_SERVER_ALIASES_MAX) {
      lookUp(foldName(target), type, tools, onDone, aliases + 1);
      return;
    }
    const seconds = Math.min(Math.max(answer?.ttlSeconds ?? 0, LEARNED_SECONDS_MIN), LEARNED_SECONDS_MAX);
    onDone({ addresses, seconds });
  });
}

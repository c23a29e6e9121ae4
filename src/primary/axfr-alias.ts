/** The addresses behind the ALIASes of a zone that is transferred: secondaries know no ALIAS. */
import { RRTYPE } from "../dns/codes.ts";
import type { TransferAlias, TransferRecord } from "./axfr-encode.ts";
import { ALIASES_AT_ONCE, ALIASES_MS } from "./limits.ts";

/** What a target has of a type: rdata, and the seconds for which it holds. Undefined: it cannot be found now. */
export type AliasAnswer = { readonly ttl: number; readonly rdatas: readonly Uint8Array[] } | undefined;

/** Asks for A or AAAA of a wire name. */
export type AliasLookup = (target: Uint8Array, type: number) => Promise<AliasAnswer>;

const TYPES = [RRTYPE.A, RRTYPE.AAAA] as const;

/**
 * A and AAAA in place of ALIAS, in their order; the TTL is the smaller of both. What fails, or has not come in time,
 * contributes nothing and keeps nothing else from being transferred. Never rejects.
 */
export async function aliasRecords(
  aliases: readonly TransferAlias[],
  lookUp: AliasLookup,
  timeoutMs = ALIASES_MS,
): Promise<readonly TransferRecord[]> {
  const questions = aliases.flatMap((alias) => TYPES.map((type) => ({ alias, type })));
  const found: (readonly TransferRecord[])[] = questions.map(() => []);
  const answers = new Map<string, Promise<AliasAnswer>>();
  let next = 0;
  let isLate = false;
  const work = async () => {
    while (!isLate && next < questions.length) {
      const place = next++;
      const { alias, type } = questions[place]!;
      const key = `${type} ${Buffer.from(alias.target).toString("latin1")}`;
      // Many names may be ALIASes of one target.
      const asked = answers.get(key) ?? lookUp(alias.target, type).catch(() => undefined);
      answers.set(key, asked);
      const answer = await asked;
      if (answer === undefined || isLate) continue;
      const { owner, ttl } = alias;
      found[place] = answer.rdatas.map((rdata) => ({ owner, type, ttl: Math.min(ttl, answer.ttl), rdata }));
    }
  };
  const { promise: late, resolve: giveUp } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    isLate = true;
    giveUp();
  }, timeoutMs);
  const workers = Array.from({ length: Math.min(ALIASES_AT_ONCE, questions.length) }, work);
  await Promise.race([Promise.all(workers), late]);
  clearTimeout(timer);
  return found.flat();
}

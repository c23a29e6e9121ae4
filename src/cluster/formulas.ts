/** The mathematics of SWIM, Lifeguard and memberlist's gossip, pure. Members are counted with oneself, without the dead. */

type Suspicions = {
  readonly suspicionMultiplier: number;
  readonly suspicionMaxMultiplier: number;
  readonly probeIntervalMs: number;
};

/** The shortest and the longest time that a member is suspected for. */
export function suspicionBounds(
  members: number,
  settings: Suspicions,
): { readonly minMs: number; readonly maxMs: number } {
  const scale = Math.max(1, Math.log10(Math.max(1, members)));
  const minMs = settings.suspicionMultiplier * scale * settings.probeIntervalMs;
  return { minMs, maxMs: minMs * settings.suspicionMaxMultiplier };
}

/** How many others have to confirm a suspicion before it lasts the shortest time; 0 where there are too few of them. */
export function confirmationsExpected(members: number, suspicionMultiplier: number): number {
  const expected = suspicionMultiplier - 2;
  return expected < 1 || members - 2 < expected ? 0 : expected;
}

/** Lifeguard: falls from the longest to the shortest time with the logarithm of the confirmations. */
export function suspicionTimeoutMs(minMs: number, maxMs: number, confirmations: number, expected: number): number {
  if (expected < 1) return minMs;
  const fraction = Math.log(confirmations + 1) / Math.log(expected + 1);
  return Math.max(minMs, maxMs - fraction * (maxMs - minMs));
}

/** How often one broadcast is sent. */
export function retransmitLimit(members: number, multiplier: number): number {
  return multiplier * Math.ceil(Math.log10(members + 1));
}

/** How often a payload of `broadcast` is sent: nobody passes it on, so that everybody's turn comes twice. */
export function userTransmitLimit(members: number, multiplier: number): number {
  return Math.max(retransmitLimit(members, multiplier), 2 * members);
}

/** From this many members on push/pull grows rarer, so that all of them together keep their pace. */
const PUSH_PULL_SCALE_MEMBERS = 32;

export function pushPullIntervalMs(members: number, intervalMs: number): number {
  if (members <= PUSH_PULL_SCALE_MEMBERS) return intervalMs;
  return intervalMs * (1 + Math.ceil(Math.log2(members) - Math.log2(PUSH_PULL_SCALE_MEMBERS)));
}

/** Who checks a suspicion that it hears of: about four members, whatever the size of the cluster. */
const CHECKS = 4;

/** The chance that one member does. */
export function checkChance(members: number): number {
  return Math.min(1, CHECKS / Math.max(1, members));
}

/** `delayMs` times 0.5 to 1.5. */
export function jittered(delayMs: number, random: () => number): number {
  return delayMs * (0.5 + random());
}

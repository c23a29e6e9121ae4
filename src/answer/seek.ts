/** Seeks an answer in the cache for a name that is not ours, by the route that it takes. */
import { RRTYPE } from "../dns/codes.ts";
import { findBlocked } from "../image/blocklist.ts";
import type { NameKey } from "../image/name-key.ts";
import { CONTROL, FORWARDING, ROUTE } from "../image/shared.ts";
import { readInOrder } from "../image/view.ts";
import { isRecursionOffered } from "./client.ts";
import { findHit, isRouted, routeAgain } from "./find-hit.ts";
import { type AnswerState, wantsRecursion } from "./state.ts";

export const SOUGHT = {
  /** `state.hit` has it. */
  HIT: 0,
  MISS: 1,
  /** The name is listed from label `state.listed` on. */
  BLOCKED: 2,
  /** Nobody answers for the name. */
  NONE: 3,
  /** The route refuses ANY. */
  PROHIBITED: 4,
} as const;
export type Sought = (typeof SOUGHT)[keyof typeof SOUGHT];

/**
 * Seeks by the route that `lookup` has, else the default forwarder's; `state.route` has it then, 0 for none. `freshOnly`: an
 * answer whose time is over is none.
 */
export function seek(state: AnswerState, key: NameKey, type: number, freshOnly: boolean): Sought {
  const { view, lookup } = state;
  const { control } = view;
  // Whatever is routed from here on is routed as this number says, or later.
  const routing = readInOrder(control, CONTROL.ROUTING);
  const route = lookup.route === 0 ? state.defaultRoute : lookup.route;
  const isProhibited =
    type === RRTYPE.ANY && lookup.route === 0 && (control[CONTROL.FORWARDING]! & FORWARDING.REFUSE_ANY) !== 0;
  state.route = route;
  const isHit = route !== 0 && !isProhibited && findHit(state, key, type, route, freshOnly);
  if (isHit && isRouted(state, routing)) return SOUGHT.HIT;
  state.listed = findBlocked(view, key);
  if (state.listed >= 0) return SOUGHT.BLOCKED;
  if (route === 0) return SOUGHT.NONE;
  if (isProhibited) return SOUGHT.PROHIBITED;
  return isHit && routeAgain(state, route, routing) ? SOUGHT.HIT : SOUGHT.MISS;
}

/** As `seek`, of a name at or below a zone cut of ours, which goes to the name servers that the cut names. */
export function seekDelegated(state: AnswerState, key: NameKey, type: number): Sought {
  const routing = readInOrder(state.view.control, CONTROL.ROUTING);
  state.route = ROUTE.DELEGATED;
  if (!findHit(state, key, type, ROUTE.DELEGATED, false)) return SOUGHT.MISS;
  return isRouted(state, routing) || routeAgain(state, ROUTE.DELEGATED, routing) ? SOUGHT.HIT : SOUGHT.MISS;
}

/** Whether a name at or below a zone cut of ours is resolved by asking the name servers that the cut names. */
export function followsCuts(state: AnswerState): boolean {
  if (state.defaultRoute === 0 || !wantsRecursion(state)) return false;
  if (isRecursionOffered(state)) return true;
  state.isRecursionRefused = true;
  return false;
}

/**
 * Where a name is routed to: an override, then the longest match over zones of ours and routes, then the blocklist unless a
 * zone of ours matched, then the route that matched, then the default forwarder's.
 */
import { RRTYPE } from "../dns/codes.ts";
import { findBlocked } from "../image/blocklist.ts";
import { createNameKey, type NameKey } from "../image/name-key.ts";
import { CONTROL, ROUTE } from "../image/shared.ts";
import type { ImageView } from "../image/view.ts";
import { createLookup, FOUND, findOverride, findZone, type Lookup, lookUpName } from "./lookup.ts";

/** What `routeOf` says besides numbers of routes. */
export const ROUTED = {
  /** Nobody: the default forwarder is disabled. */
  NONE: ROUTE.NONE,
  /** An override or a zone of ours answers for it. */
  OWN: -1,
  BLOCKED: -2,
} as const;

/** Scratch for routing names beside those of the answer in hand. */
export type RouteProbe = { readonly key: NameKey; readonly lookup: Lookup };

export function createRouteProbe(): RouteProbe {
  return { key: createNameKey(), lookup: createLookup() };
}

/**
 * The number of the route of `probe.key`, or one of ROUTED. What lies at or below a zone cut of ours goes to the name
 * servers that the cut names where there is a default forwarder, which says that recursion is offered. `probe.lookup` has
 * the cut then. To be called between `enterImage` and `leaveImage`.
 */
export function routeOf(view: ImageView, { key, lookup }: RouteProbe, type: number): number {
  const { control } = view;
  const overrides = control[CONTROL.OVERRIDES]!;
  if (overrides !== 0 && findOverride(view, overrides, key) !== 0) return ROUTED.OWN;
  const defaultRoute = control[CONTROL.DEFAULT_ROUTE]!;
  if (findOwnZone(view, lookup, key, type)) {
    lookUpName(view, lookup, key);
    const isDelegated = isBelowCut(lookup, type) && defaultRoute !== 0;
    return isDelegated ? ROUTE.DELEGATED : ROUTED.OWN;
  }
  const { route } = lookup;
  if (findBlocked(view, key) >= 0) return ROUTED.BLOCKED;
  return route === 0 ? defaultRoute : route;
}

/**
 * Finds our zone for a name: the parent's for DS, which lies on its side of the cut (RFC 4035 section 3.1.4.1). False: there
 * is none, and `lookup.route` has the route that matched.
 */
export function findOwnZone(view: ImageView, lookup: Lookup, key: NameKey, type: number): boolean {
  const isOwn = findZone(view, lookup, key, 0) !== 0;
  if (type !== RRTYPE.DS || lookup.apexLabel !== 0 || key.labels === 0) return isOwn;
  return isOwn ? findParentZone(view, lookup, key) : findParentRoute(view, lookup, key);
}

function findParentZone(view: ImageView, lookup: Lookup, key: NameKey): true {
  const { zone } = lookup;
  if (findZone(view, lookup, key, 1) === 0) {
    lookup.zone = zone;
    lookup.apexLabel = 0;
  }
  return true;
}

/** A zone of ours above knows nothing of the domain of a route, and would deny that it is there. */
function findParentRoute(view: ImageView, lookup: Lookup, key: NameKey): false {
  const { route } = lookup;
  const isOurs = findZone(view, lookup, key, 1) !== 0;
  if (isOurs || (lookup.route === 0 && view.control[CONTROL.DEFAULT_ROUTE] === 0)) {
    lookup.zone = 0;
    lookup.route = route;
    lookup.apexLabel = 0;
  }
  return false;
}

/** Whether what `lookUpName` found is the business of a zone below ours; DS at the cut is ours. */
export function isBelowCut({ found, cutLabel }: Lookup, type: number): boolean {
  return found === FOUND.CUT && !(cutLabel === 0 && type === RRTYPE.DS);
}

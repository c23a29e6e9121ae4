/** Answers for names that no zone of ours holds: the way of the default forwarder, conditional forwarders and stub zones. */
import { CLASS, EDE, FLAG, RCODE, RRTYPE } from "../dns/codes.ts";
import { CONTROL, FORWARDING } from "../image/shared.ts";
import type { Spelled } from "./spelled.ts";
import { type AnswerState, lack, STEP, type Step } from "./state.ts";
import { traceRoute } from "./trace-names.ts";

/** Answers for a name that is routed away from us, or to nobody; `lookup.route` has the route that matched. */
export function answerElsewhere(state: AnswerState, name: Spelled, next: Spelled, hops: number): Step {
  const { query, lookup, view } = state;
  const route = lookup.route === 0 ? state.defaultRoute : lookup.route;
  if (!state.forwards || route === 0 || query.class !== CLASS.IN) return refuse(state, name, hops);
  if (hops === 0) state.headerFlags |= FLAG.RA;
  const refusesAny = (view.control[CONTROL.FORWARDING]! & FORWARDING.REFUSE_ANY) !== 0;
  if (query.type === RRTYPE.ANY && refusesAny && lookup.route === 0) {
    query.rcode = RCODE.REFUSED;
    query.extendedError = EDE.PROHIBITED;
    return STEP.ANSWERED;
  }
  return answerForwarded(state, name, next, hops, route);
}

/** Answers from what the cache has for a name by a route. */
export function answerForwarded(state: AnswerState, name: Spelled, _next: Spelled, hops: number, route: number): Step {
  const { query } = state;
  if ((query.flags & FLAG.RD) === 0) return refuse(state, name, hops);
  state.headerFlags |= query.flags & FLAG.CD;
  return lack(state, name.key, query.type, route);
}

/** Nobody answers for the name: a question is refused, a chain ends with what it has so far. */
function refuse(state: AnswerState, name: Spelled, hops: number): Step {
  const { query } = state;
  if (state.trace !== undefined) traceRoute(state, name, "none");
  if (hops === 0) {
    query.rcode = RCODE.REFUSED;
    query.extendedError = EDE.NOT_AUTHORITATIVE;
  }
  return STEP.ANSWERED;
}

/** Whether a name at or below a zone cut of ours is resolved by asking the name servers that the cut names. */
export function followsCuts(state: AnswerState): boolean {
  return state.defaultRoute !== 0 && (state.query.flags & FLAG.RD) !== 0 && state.query.class === CLASS.IN;
}

/** Questions being resolved, each once however many ask it, and bounded. */

import { nameText } from "./resolver-names.ts";
import type { Asked, Resolved } from "./resolver-types.ts";
import type { Answer } from "./response.ts";

/** Is told what came of a question, with the answer itself where there is one. */
export type Waiter = (resolved: Resolved, answer: Answer | undefined) => void;

/** What one question may cause, together with what it causes in turn. */
export type Budget = {
  /** Names of name servers that are looked up. */
  lookups: number;
  /** Questions to servers on the way down, and for those names. */
  steps: number;
};

export type Flight = {
  readonly key: string;
  readonly asked: Asked;
  /** Emptied when they are told; who comes later waits again. */
  waiters: Waiter[];
  readonly budget: Budget;
  /** Those whose answers this one waits for. */
  readonly waitsFor: Set<Flight>;
  /** The answer is for those who wait, and nobody else: the cache was flushed meanwhile. */
  isOutdated: boolean;
  cancel: () => void;
  stopStaleTimer: (() => void) | undefined;
};

export type Flights = {
  readonly byKey: Map<string, Flight>;
  /** Waiters of all flights. */
  waiting: number;
};

export type FlightLimits = { readonly flights: number; readonly waiting: number; readonly waitingEach: number };

export type Boarding =
  /** The caller is to resolve it. */
  | { readonly kind: "new"; readonly flight: Flight }
  | { readonly kind: "joined"; readonly flight: Flight }
  /** There are too many, or waiting would never end. */
  | { readonly kind: "refused"; readonly why: "full" | "circle" };

export function createFlights(): Flights {
  return { byKey: new Map(), waiting: 0 };
}

export function flightKey({ name, type, flags, route }: Asked): string {
  return `${type} ${flags} ${route} ${nameText(name)}`;
}

/** Waits for the question, with whoever waits for it already. `parent` is what needs the answer, when another question does. */
export function board(
  flights: Flights,
  limits: FlightLimits,
  asked: Asked,
  waiter: Waiter | undefined,
  budget: Budget,
  parent?: Flight,
): Boarding {
  const key = flightKey(asked);
  const known = flights.byKey.get(key);
  if (waiter !== undefined && flights.waiting >= limits.waiting) return { kind: "refused", why: "full" };
  if (known === undefined) {
    if (flights.byKey.size >= limits.flights) return { kind: "refused", why: "full" };
    const flight: Flight = {
      key,
      asked,
      waiters: [],
      budget,
      waitsFor: new Set(),
      isOutdated: false,
      cancel: () => {},
      stopStaleTimer: undefined,
    };
    flights.byKey.set(key, flight);
    addWaiter(flights, flight, waiter, parent);
    return { kind: "new", flight };
  }
  if (known.waiters.length >= limits.waitingEach) return { kind: "refused", why: "full" };
  if (parent !== undefined && leadsTo(known, parent)) return { kind: "refused", why: "circle" };
  addWaiter(flights, known, waiter, parent);
  return { kind: "joined", flight: known };
}

function addWaiter(flights: Flights, flight: Flight, waiter: Waiter | undefined, parent: Flight | undefined): void {
  parent?.waitsFor.add(flight);
  if (waiter === undefined) return;
  flights.waiting++;
  flight.waiters.push(waiter);
}

/** Whether `from` waits for `to`, or for what waits for it. Each waits for a few at most. */
function leadsTo(from: Flight, to: Flight): boolean {
  const seen = new Set<Flight>();
  const open = [from];
  for (let flight = open.pop(); flight !== undefined; flight = open.pop()) {
    if (flight === to) return true;
    if (seen.has(flight)) continue;
    seen.add(flight);
    open.push(...flight.waitsFor);
  }
  return false;
}

/** Tells all who wait; the flight goes on. */
export function tellWaiters(flights: Flights, flight: Flight, resolved: Resolved, answer: Answer | undefined): void {
  const { waiters } = flight;
  flight.waiters = [];
  flights.waiting -= waiters.length;
  for (const waiter of waiters) waiter(resolved, answer);
}

/** Ends a flight, before anybody is told. */
export function land(flights: Flights, flight: Flight): void {
  flights.byKey.delete(flight.key);
  flight.stopStaleTimer?.();
  flight.stopStaleTimer = undefined;
  flight.waitsFor.clear();
}

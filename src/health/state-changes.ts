/**
 * Changes of states on their way to the records that they gate, one after the other. One probe may gate a hundred thousand
 * records, each with an event, so whoever shares the thread has its turn in between.
 */
import { type Book, type GatedProbe, stateSteps } from "./book.ts";
import type { ProbeState } from "./probe.ts";

export type StateChanges = {
  /**
   * The probe is in that state; `how` says, of the state before, whether events are told of it. What there is little of is
   * done when this returns.
   */
  readonly put: (probe: GatedProbe, state: ProbeState, how: (before: ProbeState) => "told" | "silent") => void;
};

/** Records of one turn: a few milliseconds. */
export const RECORDS_A_TURN = 500;

type Change = { readonly begin: () => Generator<undefined, void> };

export function createStateChanges(book: Book): StateChanges {
  const waiting: Change[] = [];
  /** Of `waiting`, those before it are done. */
  let first = 0;
  let steps: Generator<undefined, void> | undefined;
  /** What this turn may do still. */
  let left = RECORDS_A_TURN;
  let isTurnAhead = false;

  const work = (): void => {
    while (left > 0) {
      steps ??= waiting[first]?.begin();
      if (steps === undefined) break;
      left -= 1;
      if (steps.next().done !== true) continue;
      steps = undefined;
      first += 1;
    }
    if (first === waiting.length) {
      waiting.length = 0;
      first = 0;
    }
    if (left === RECORDS_A_TURN || isTurnAhead) return;
    // Also where nothing waits: the budget is of one turn of the event loop.
    isTurnAhead = true;
    setImmediate(() => {
      isTurnAhead = false;
      left = RECORDS_A_TURN;
      work();
    });
  };
  return {
    put: (probe, state, how) => {
      waiting.push({ begin: () => stateSteps(book, probe, state, how(probe.state)) });
      work();
    },
  };
}

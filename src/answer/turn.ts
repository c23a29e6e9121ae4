/** The live word of a selection: SELECTION.TURN of layout.ts, which answers read and write. */
import type { AnswerState } from "./state.ts";

/** The word at `at` as this answerer sees it. */
export function turnAt({ view, turns }: AnswerState, at: number): number {
  const word = view.words[at]!;
  return turns === undefined ? word : (turns.get(at) ?? word);
}

/** What is written to the image is there for all; a frozen answerer keeps it to itself. */
export function setTurn({ view, turns }: AnswerState, at: number, turn: number): void {
  if (turns === undefined) view.words[at] = turn;
  else turns.set(at, turn);
}

/**
 * What the control thread and the health thread tell each other, over one port, in order: whoever is told figures that it
 * asked for knows that the shared health words have what was known from before of all probes it had named by then.
 */
import type { ProbeFigures, ProbePolicy, ProbeSpec, ProbeState, ProbeStatus, Transition } from "./probe.ts";

export type ToHealth =
  /**
   * A control thread begins: what it names up to "complete" is all that there is to probe. The probes of its predecessor go on
   * until then, and for long where a zone cannot be published, since what the predecessor published of it answers.
   */
  | { readonly kind: "begin" }
  | { readonly kind: "complete" }
  /** Probes to begin, or to change where the key is known, and probes to end. */
  | { readonly kind: "probes"; readonly start: readonly ProbeSpec[]; readonly stop: readonly string[] }
  | { readonly kind: "policy"; readonly policy: ProbePolicy }
  /** At most STATUSES_ASKED_MAX keys; each ask is told once. */
  | { readonly kind: "ask"; readonly id: number; readonly keys: readonly string[] }
  | { readonly kind: "ask-figures"; readonly id: number };

export type FromHealth =
  /** Sent by every replacement of a health thread: it knows no probe yet. The first one hears all from the beginning. */
  | { readonly kind: "ready" }
  /**
   * Of probes named in a "probes" message, those whose state is known from before: from the time before a restart, or because
   * they went on while control was replaced. No verdict is new here, so nothing has happened.
   */
  | { readonly kind: "known"; readonly states: readonly KnownState[] }
  | { readonly kind: "transitions"; readonly transitions: readonly Transition[] }
  /** In the order of the keys asked for; those that are not known are left out. */
  | { readonly kind: "told"; readonly id: number; readonly statuses: readonly ProbeStatus[] }
  | { readonly kind: "told-figures"; readonly id: number; readonly figures: ProbeFigures };

export type KnownState = { readonly key: string; readonly state: ProbeState; readonly sinceMs: number };

export const STATUSES_ASKED_MAX = 500;

/** The other thread, as either side sees it. */
export type HealthPort<Out, In> = {
  readonly post: (message: Out) => void;
  readonly onMessage: (listener: (message: In) => void) => void;
  readonly close: () => void;
};

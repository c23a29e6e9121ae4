/** What the control thread and the health thread tell each other, over one port. */
import type { ProbeFigures, ProbePolicy, ProbeSpec, ProbeStatus, Transition } from "./probe.ts";

export type ToHealth =
  /** A control thread begins: what it names up to "complete" is all that there is to probe. */
  | { readonly kind: "begin" }
  | { readonly kind: "complete" }
  /** Probes to begin, or to change where the key is known, and probes to end. */
  | { readonly kind: "probes"; readonly start: readonly ProbeSpec[]; readonly stop: readonly string[] }
  | { readonly kind: "policy"; readonly policy: ProbePolicy }
  /** At most STATUSES_ASKED_MAX keys; each ask is told once. */
  | { readonly kind: "ask"; readonly id: number; readonly keys: readonly string[] }
  | { readonly kind: "ask-figures"; readonly id: number };

export type FromHealth =
  /** Sent by every health thread that begins, the first and each replacement: it knows no probe yet. */
  | { readonly kind: "ready" }
  | { readonly kind: "transitions"; readonly transitions: readonly Transition[] }
  /** In the order of the keys asked for; those that are not known are left out. */
  | { readonly kind: "told"; readonly id: number; readonly statuses: readonly ProbeStatus[] }
  | { readonly kind: "told-figures"; readonly id: number; readonly figures: ProbeFigures };

export const STATUSES_ASKED_MAX = 500;

/** The other thread, as either side sees it. */
export type HealthPort<Out, In> = {
  readonly post: (message: Out) => void;
  readonly onMessage: (listener: (message: In) => void) => void;
  readonly close: () => void;
};

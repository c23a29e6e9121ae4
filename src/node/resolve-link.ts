/** The control thread's end of its way to the thread that resolves, and that answers updaters and secondaries, whichever runs. */
import type { MessagePort } from "node:worker_threads";
import { RCODE } from "../dns/codes.ts";
import type { FromPrimary, PrimaryFigures, PrimarySettings, ToPrimary } from "../primary/messages.ts";
import type { FromResolve, ResolveFigures, ResolveSettings, ToResolve } from "../resolve/settings.ts";
import { RESOLVE_ASK_MS } from "./limits.ts";
import type { PrimaryEnd, PrimaryQuestion } from "./primary-plane.ts";
import type { ResolveEnd } from "./resolve-plane.ts";
import { createThreadLink } from "./thread-link.ts";

export type ResolveLink = ResolveEnd &
  PrimaryEnd &
  Disposable & {
    /** Another thread has taken over; it is sent the settings once it asks for them. */
    readonly connect: (port: MessagePort) => void;
  };

/** What the thread does not answer within `askMs` is undefined. */
export function createResolveLink(first: MessagePort, askMs = RESOLVE_ASK_MS): ResolveLink {
  const link = createThreadLink<ToResolve | ToPrimary, FromResolve | FromPrimary>(first);
  const ids = { last: 0 };
  const flushed = createQuestions<number>(link.post, ids, askMs);
  const figures = createQuestions<ResolveFigures>(link.post, ids, askMs);
  const primaryFigures = createQuestions<PrimaryFigures>(link.post, ids, askMs);
  let settings: ResolveSettings | undefined;
  let primary: PrimarySettings | undefined;
  let answerPrimary: ((question: PrimaryQuestion) => Promise<ToPrimary>) | undefined;
  /** Which thread is behind the link: ids of another one mean something else. */
  let generation = 0;

  const answer = async (question: PrimaryQuestion) => {
    const asked = generation;
    const message = answerPrimary === undefined ? notYet(question) : await answerPrimary(question);
    if (asked === generation) link.post(message);
  };
  link.onMessage((message) => {
    switch (message.kind) {
      case "ready":
        if (settings !== undefined) link.post({ kind: "settings", settings });
        if (primary !== undefined) link.post({ kind: "primary-settings", settings: primary });
        return;
      case "flushed":
        return flushed.tell(message.id, message.entries);
      case "told-figures":
        return figures.tell(message.id, message.figures);
      case "told-primary-figures":
        return primaryFigures.tell(message.id, message.figures);
      case "update":
      case "encode":
        return void answer(message);
    }
  });
  return {
    sendSettings: (given) => {
      settings = given;
      link.post({ kind: "settings", settings });
    },
    flush: (name, isSubtree) => flushed.ask((id) => ({ kind: "flush", id, name, isSubtree })),
    figures: () => figures.ask((id) => ({ kind: "ask-figures", id })),
    sendPrimary: (given) => {
      primary = given;
      link.post({ kind: "primary-settings", settings: primary });
    },
    onPrimary: (given) => {
      answerPrimary = given;
    },
    primaryFigures: () => primaryFigures.ask((id) => ({ kind: "ask-primary-figures", id })),
    connect: (port) => {
      generation += 1;
      link.connect(port);
    },
    [Symbol.dispose]: () => {
      generation += 1;
      link.close();
      for (const questions of [flushed, figures, primaryFigures]) questions.end();
    },
  };
}

/** Asked before the store is open: the client, or the secondary, comes again. */
function notYet({ kind, id }: PrimaryQuestion): ToPrimary {
  if (kind === "update") return { kind: "updated", id, rcode: RCODE.SERVFAIL };
  return { kind: "encoded", id, zone: { kind: "failed", detail: "the control thread is starting" } };
}

/** Questions of one kind that wait for what they are told. Ids are drawn from `ids`, which all kinds share. */
function createQuestions<Told>(
  post: (message: ToResolve | ToPrimary) => void,
  ids: { last: number },
  askMs: number,
): {
  readonly ask: (message: (id: number) => ToResolve | ToPrimary) => Promise<Told | undefined>;
  readonly tell: (id: number, told: Told) => void;
  readonly end: () => void;
} {
  const open = new Map<number, (told: Told | undefined) => void>();
  return {
    ask: (message) =>
      new Promise((resolve) => {
        ids.last += 1;
        const id = ids.last;
        const tell = (told: Told | undefined) => {
          clearTimeout(timer);
          open.delete(id);
          resolve(told);
        };
        const timer = setTimeout(tell, askMs, undefined);
        open.set(id, tell);
        post(message(id));
      }),
    tell: (id, told) => open.get(id)?.(told),
    end: () => {
      for (const tell of [...open.values()]) tell(undefined);
    },
  };
}

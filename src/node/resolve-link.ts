/** The control thread's end of its way to the thread that resolves, whichever runs. */
import type { MessagePort } from "node:worker_threads";
import type { FromResolve, ResolveFigures, ResolveSettings, ToResolve } from "../resolve/settings.ts";
import { RESOLVE_ASK_MS } from "./limits.ts";
import type { ResolveEnd } from "./resolve-plane.ts";
import { createThreadLink } from "./thread-link.ts";

export type ResolveLink = ResolveEnd &
  Disposable & {
    /** Another thread has taken over; it is sent the settings once it asks for them. */
    readonly connect: (port: MessagePort) => void;
  };

type Asked = {
  readonly tellFlushed: (entries: number | undefined) => void;
  readonly tellFigures: (figures: ResolveFigures | undefined) => void;
};

const NOT_ASKED = { tellFlushed: () => {}, tellFigures: () => {} };

/** What the thread does not answer within `askMs` is undefined. */
export function createResolveLink(first: MessagePort, askMs = RESOLVE_ASK_MS): ResolveLink {
  const link = createThreadLink<ToResolve, FromResolve>(first);
  const open = new Map<number, Asked>();
  let settings: ResolveSettings | undefined;
  let lastId = 0;

  /** Resolves with what `asked` is told, or with undefined in the end. */
  const ask = <Told>(message: (id: number) => ToResolve, asked: (tell: (told: Told | undefined) => void) => Asked) =>
    new Promise<Told | undefined>((resolve) => {
      lastId += 1;
      const id = lastId;
      const tell = (told: Told | undefined) => {
        clearTimeout(timer);
        open.delete(id);
        resolve(told);
      };
      const timer = setTimeout(tell, askMs, undefined);
      open.set(id, asked(tell));
      link.post(message(id));
    });
  link.onMessage((message) => {
    switch (message.kind) {
      case "ready":
        if (settings !== undefined) link.post({ kind: "settings", settings });
        return;
      case "flushed":
        return open.get(message.id)?.tellFlushed(message.entries);
      case "told-figures":
        return open.get(message.id)?.tellFigures(message.figures);
    }
  });
  return {
    sendSettings: (given) => {
      settings = given;
      link.post({ kind: "settings", settings });
    },
    flush: (name, isSubtree) =>
      ask<number>(
        (id) => ({ kind: "flush", id, name, isSubtree }),
        (tellFlushed) => ({ ...NOT_ASKED, tellFlushed }),
      ),
    figures: () =>
      ask<ResolveFigures>(
        (id) => ({ kind: "ask-figures", id }),
        (tellFigures) => ({ ...NOT_ASKED, tellFigures }),
      ),
    connect: link.connect,
    [Symbol.dispose]: () => {
      link.close();
      for (const { tellFlushed, tellFigures } of [...open.values()]) {
        tellFlushed(undefined);
        tellFigures(undefined);
      }
    },
  };
}

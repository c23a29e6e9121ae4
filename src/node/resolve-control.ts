/** The resolving thread's end of its way to the control thread, whichever runs. */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { ROUTE } from "../image/shared.ts";
import type { FromPrimary, ToPrimary } from "../primary/messages.ts";
import type { Exchanger } from "../resolve/exchange.ts";
import type { RunningResolver } from "../resolve/resolver-options.ts";
import type { FromResolve, ResolveFigures, ToResolve } from "../resolve/settings.ts";
import type { Primary } from "./primary-gate-thread.ts";

export type ControlWay = {
  readonly connect: (port: MessagePort) => void;
  /** Whether there is a route of this number; what control has said of it may be on its way. */
  readonly knowsRoute: (route: number) => boolean;
  /** Hears what control has said and nobody has heard yet; false: nothing. */
  readonly hearOne: () => boolean;
  /** False: there is no control thread. */
  readonly tell: (message: FromResolve | FromPrimary) => boolean;
  readonly close: () => void;
};

type ControlWayOptions = {
  readonly resolver: Pick<RunningResolver, "setSettings" | "flush" | "figures">;
  readonly exchanges: Pick<Exchanger, "setListens">;
  /** Known once somebody has connected. */
  readonly primary: () => Pick<Primary, "hear" | "lost">;
  readonly completed: (figures: ResolveFigures) => ResolveFigures;
};

export function createControlWay({ resolver, exchanges, primary, completed }: ControlWayOptions): ControlWay {
  let control: MessagePort | undefined;
  let routes: ReadonlySet<number> = new Set([ROUTE.DELEGATED]);
  const tell = (message: FromResolve | FromPrimary) => {
    control?.postMessage(message);
    return control !== undefined;
  };
  const hear = (message: ToResolve | ToPrimary) => {
    switch (message.kind) {
      case "settings":
        exchanges.setListens(message.settings.listens);
        resolver.setSettings(message.settings);
        routes = new Set([ROUTE.DELEGATED, ...message.settings.routes.map(({ number }) => number)]);
        return;
      case "flush":
        return void tell({ kind: "flushed", id: message.id, entries: resolver.flush(message.name, message.isSubtree) });
      case "ask-figures":
        return void tell({ kind: "told-figures", id: message.id, figures: completed(resolver.figures()) });
      default:
        return primary().hear(message);
    }
  };
  const hearOne = () => {
    const received = control === undefined ? undefined : receiveMessageOnPort(control);
    if (received !== undefined) hear(received.message);
    return received !== undefined;
  };
  const lose = (port: MessagePort | undefined) => {
    if (port === undefined || port !== control) return;
    control = undefined;
    port.close();
    primary().lost();
  };
  return {
    connect: (port) => {
      lose(control);
      control = port;
      port.on("message", hear);
      // The other end closes with its thread.
      port.on("close", () => lose(port));
      tell({ kind: "ready" });
    },
    knowsRoute: (route) => {
      while (!routes.has(route)) if (!hearOne()) return false;
      return true;
    },
    hearOne,
    tell,
    close: () => control?.close(),
  };
}

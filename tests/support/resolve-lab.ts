/** Listener threads and the thread that resolves, supervised as in a node, with the test in the place of the control thread. */
import { offerRecursion } from "../../src/image/recursion.ts";
import { CONTROL, createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import { openImageWriter, setDefaultRoute } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import type { Address } from "../../src/listen/address.ts";
import { openLibc } from "../../src/listen/linux/libc.ts";
import { closeListeners, openListeners } from "../../src/listen/sockets.ts";
import { probeListeners } from "../../src/listen/sockets-portable.ts";
import { type ListenerThread, planListeners, startListener } from "../../src/node/listener-threads.ts";
import { THREAD_PLAN } from "../../src/node/node.ts";
import { createResolveLink, type ResolveLink } from "../../src/node/resolve-link.ts";
import { type ResolveSupervision, startResolve } from "../../src/node/resolve-supervision.ts";
import { createNodeStatus, type NodeStatus } from "../../src/node/status.ts";
import type { ResolveSettings, Route } from "../../src/resolve/settings.ts";
import { EVERYBODY } from "./zone-lab.ts";

export const ROUTE_NUMBER = 77;

export type ResolveLabOptions = {
  readonly udp: "batch" | "dgram";
  /** False: the threads bind their addresses themselves. */
  readonly hasDescriptors?: boolean;
  readonly addresses?: readonly Address[];
  /** Default: one with the upstreams of resolve-thread-entry.ts. */
  readonly entry?: URL;
  readonly route?: Partial<Route>;
  readonly caPem?: string;
  readonly lifelessMs?: number;
  readonly answerThreads?: number;
};

export type ResolveLab = AsyncDisposable & {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  readonly writer: ImageWriter;
  readonly addresses: readonly Address[];
  readonly resolve: ResolveSupervision;
  readonly listeners: readonly ListenerThread[];
  readonly link: ResolveLink;
  readonly lines: string[];
  /** The default forwarder's settings, as they were sent. */
  readonly settings: ResolveSettings;
};

export const LOOPBACK: Address = { bytes: Uint8Array.of(127, 0, 0, 1), port: 0 };

export function settingsOf(route: Partial<Route> = {}): ResolveSettings {
  const upstream = { transport: "dns", host: "127.0.0.1", isAddress: true, port: 9, tlsName: undefined } as const;
  return {
    routes: [
      {
        number: ROUTE_NUMBER,
        kind: "default",
        domain: Uint8Array.of(0),
        upstreams: [upstream],
        hardening: undefined,
        ...route,
      },
    ],
    cache: { isEnabled: true, maxBytes: 2 ** 22, minTtl: 0, maxTtl: 86_400, maxNegativeTtl: 3_600 },
    listens: [],
  };
}

export async function openResolveLab(options: ResolveLabOptions): Promise<ResolveLab> {
  const { udp, hasDescriptors = true, addresses: asked = [LOOPBACK], answerThreads = 1, lifelessMs = 10_000 } = options;
  const libc = openLibc();
  if (libc === undefined) throw new Error("this needs Linux and koffi");
  const shared = createSharedImage(1);
  const words = new Int32Array(shared.control);
  const tick = () => Atomics.store(words, CONTROL.CLOCK_SECONDS, Math.floor(Date.now() / 1000));
  tick();
  const clock = setInterval(tick, 200);
  const sockets = hasDescriptors ? openListeners(libc, asked, answerThreads, []) : await probeListeners(asked);
  const names = Array.from({ length: answerThreads }, (_, index) => `answer-${index}`);
  const status = createNodeStatus(["resolve", "stream", ...names]);
  const lines: string[] = [];
  const log = (_: string, message: string) => void lines.push(message);
  const answers = { nodeId: undefined, maxUdpSize: 1232, tcpIdleSeconds: 10, clientSubnetSources: [] };
  const plan = planListeners(udp, sockets, names);
  const resolve = startResolve({
    entry: options.entry ?? new URL("./resolve-thread-entry.ts", import.meta.url),
    lifelessMs,
    shared,
    status,
    thread: answerThreads + 3,
    ownThread: answerThreads + 4,
    sockets: plan.map((one) => one.sockets.map(({ descriptor }) => descriptor)),
    options: answers,
    caPem: options.caPem,
    log,
  });
  const link = createResolveLink(resolve.connect());
  resolve.onReplaced((port) => link.connect(port));
  const settings = settingsOf(options.route);
  link.sendSettings(settings);
  const frame = { shared, status, options: answers, entries: THREAD_PLAN, resolve, log };
  const listeners = await Promise.all(plan.map((one, thread) => startListener(frame, one, thread)));
  const writer = openImageWriter(shared);
  offerRecursion(writer, EVERYBODY);
  setDefaultRoute(writer, ROUTE_NUMBER, 0);
  return {
    shared,
    status,
    writer,
    addresses: sockets.map(({ address }) => address),
    resolve,
    listeners,
    link,
    lines,
    settings,
    [Symbol.asyncDispose]: async () => {
      Atomics.store(words, CONTROL.STOP, 1);
      await Promise.all(listeners.map((thread) => thread.terminate()));
      await resolve.thread.terminate();
      link[Symbol.dispose]();
      clearInterval(clock);
      if (hasDescriptors) closeListeners(libc, sockets);
    },
  };
}

/** The thread ends in order. */
export async function stopResolve({ resolve }: ResolveLab): Promise<void> {
  const ended = resolve.thread.ended();
  resolve.thread.post({ kind: "stop" });
  await ended;
}

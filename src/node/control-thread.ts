/**
 * The control thread: the one writer of the store and of the image, the API, and the management listener. It may die: DNS
 * answers on from the image, and its replacement opens the store again and puts the image right.
 */
import { once } from "node:events";
import type { Server } from "node:http";
import type { MessagePort } from "node:worker_threads";
import { errorText, OperatorError } from "../base/errors.ts";
import type { Log, LogLine } from "../base/log.ts";
import type { FromHealth, ToHealth } from "../health/messages.ts";
import type { SharedImage } from "../image/shared.ts";
import { type Address, hostText } from "../listen/address.ts";
import { bindFailure } from "../listen/sockets.ts";
import type { ZoneArgument } from "./arguments.ts";
import type { Config } from "./config.ts";
import { apiAddress, type ControlPlane, openControlPlane, ZoneFilesRefused } from "./control-plane.ts";
import type { NodeKeys } from "./keys.ts";
import { SERVED_ZONES_NAMED } from "./limits.ts";
import { type Component, createManagementServer, createProbe, storeComponent } from "./management.ts";
import { watchHeap } from "./memory-guard.ts";
import { createMetrics } from "./metrics.ts";
import { createResolveLink, type ResolveLink } from "./resolve-link.ts";
import type { SecureWish } from "./secure-thread.ts";
import { giveLifeSigns, type NodeStatus } from "./status.ts";
import { createThreadLink, type ThreadLink } from "./thread-link.ts";
import type { ZoneFilesReport } from "./zone-files.ts";

/** `workerData` of the control thread. */
export type ControlData = {
  readonly shared: SharedImage;
  /** Index of this thread among those that read the image. */
  readonly thread: number;
  readonly status: NodeStatus;
  readonly config: Config;
  readonly nodeId: string;
  readonly keys: NodeKeys;
  /** Zone files to import; none for a replacement, which finds their zones in the store. */
  readonly zones: readonly ZoneArgument[];
  readonly management: Address;
  readonly api: Address;
  /** Sockets that this node answers DNS on, with the ports in use. */
  readonly dns: readonly Address[];
  readonly version: string;
  /** The node starts: a fault ends it. */
  readonly isFirst: boolean;
  /** To the health thread; transferred. */
  readonly healthPort: MessagePort;
  /** To the thread that resolves; transferred. */
  readonly resolvePort: MessagePort;
};

/** What is served at the start: how many zones, and the first of them. */
export type ServedZones = {
  readonly count: number;
  readonly first: readonly { readonly name: string; readonly records: number; readonly serial: number }[];
};

export type ControlMessage =
  | { readonly kind: "log"; readonly line: LogLine }
  /** For the operator to see, once. */
  | { readonly kind: "admin-password"; readonly password: string }
  /** Every zone can be answered; the API is still being opened. */
  | { readonly kind: "published" }
  /** Where DNS over TLS and HTTPS are wanted, now. */
  | { readonly kind: "transport"; readonly wish: SecureWish }
  | { readonly kind: "ready"; readonly management: Address; readonly api: Address; readonly served: ServedZones }
  /** The node cannot start: `faults` are printed, then `summary`. */
  | { readonly kind: "refused"; readonly faults: readonly string[]; readonly summary: string };

export type ControlCommand =
  | { readonly kind: "reload" }
  /** The health thread was replaced. */
  | { readonly kind: "health-port"; readonly port: MessagePort }
  /** The thread that resolves was. */
  | { readonly kind: "resolve-port"; readonly port: MessagePort }
  /** What was said by "transport" with that number is so. */
  | { readonly kind: "transport-settled"; readonly number: number }
  /** Take no new request; those under way may end. */
  | { readonly kind: "drain" }
  | { readonly kind: "stop" };

/** Listens, opens the store, publishes it, says so, and serves until it is told to stop. */
export async function runControl(data: ControlData, port: MessagePort): Promise<void> {
  const say = (message: ControlMessage) => port.postMessage(message);
  const log: Log = (level, message, fields = {}) => say({ kind: "log", line: { level, message, fields } });
  const metrics = createMetrics(data.shared, data.status, data.version);
  let plane: ControlPlane | undefined;
  const probe = createProbe(data.status, metrics, () => componentsOf(plane));
  const server = createManagementServer(probe);
  const closing = new AsyncDisposableStack();
  closing.use(giveLifeSigns(data.status, "control"));
  const health = closing.use(createThreadLink<ToHealth, FromHealth>(data.healthPort));
  const resolve = closing.use(createResolveLink(data.resolvePort));
  closing.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  try {
    const management = await listen(server, data.management);
    plane = await openControlPlane(
      {
        ...data,
        managementListens: management,
        metrics,
        probe,
        health,
        resolve,
        log,
        onAdminPassword: (password) => say({ kind: "admin-password", password }),
        onPublished: () => say({ kind: "published" }),
        onTransport: (wish) => say({ kind: "transport", wish }),
      },
      closing,
    );
    reportZoneFiles(plane.imported, log);
    say({ kind: "ready", management, api: apiAddress(plane, data.api), served: servedZones(plane) });
  } catch (error) {
    await closing.disposeAsync();
    const refusal = refusalOf(error);
    if (!data.isFirst || refusal === undefined) throw error;
    return say(refusal);
  }
  serveCommands({ port, plane, health, resolve, closing, log });
  guardThread(closing, log);
}

/** A thread that cannot go on closes what it has open and makes way for another, before it is torn down where it stands. */
function guardThread(closing: AsyncDisposableStack, log: Log): void {
  let isDying = false;
  const makeWay = (reason: string) => {
    if (isDying || closing.disposed) return;
    isDying = true;
    log("error", `the control thread makes way for another: ${reason}`);
    // Not in the midst of HTTP/2: Node 26 aborts the process where a thread ends between two frames of one read.
    void closing.disposeAsync().finally(() => setImmediate(() => process.exit(1)));
  };
  process.on("uncaughtException", (error) => makeWay(errorText(error)));
  closing.use(watchHeap(() => makeWay("its memory is nearly full")));
}

type Serving = {
  readonly port: MessagePort;
  readonly plane: ControlPlane;
  readonly health: ThreadLink<ToHealth, FromHealth>;
  readonly resolve: ResolveLink;
  readonly closing: AsyncDisposableStack;
  readonly log: Log;
};

function serveCommands({ port, plane: { api, queryLog, secure }, health, resolve, closing, log }: Serving): void {
  port.on("message", (command: ControlCommand) => {
    switch (command.kind) {
      case "reload":
        log(
          "info",
          "the API's certificate is looked at, the query log opened anew; zone files are imported at the start only",
        );
        queryLog.reopen();
        return api.reloadCertificate();
      case "health-port":
        return health.connect(command.port);
      case "resolve-port":
        return resolve.connect(command.port);
      case "transport-settled":
        return secure.settled(command.number);
      case "drain":
        return void api.close();
      case "stop":
        return void closing.disposeAsync().then(
          () => port.close(),
          (error: unknown) => {
            log("error", `stopping failed: ${errorText(error)}`);
            port.close();
          },
        );
    }
  });
}

function refusalOf(error: unknown): (ControlMessage & { readonly kind: "refused" }) | undefined {
  if (error instanceof ZoneFilesRefused)
    return { kind: "refused", faults: error.report.faults, summary: error.message };
  if (error instanceof OperatorError) return { kind: "refused", faults: error.details, summary: error.message };
  return undefined;
}

const OPENING: Component = { ready: false, detail: "is being opened" };

function componentsOf(plane: ControlPlane | undefined): Readonly<Record<string, Component>> {
  if (plane === undefined) return { store: OPENING, zones: OPENING, api: OPENING };
  const { waitingZones, failedZones } = plane.publisher.stats();
  const { store } = plane;
  return {
    store: storeComponent(store.failure(), store.count("zone"), store.count("record")),
    zones:
      failedZones === 0
        ? { ready: true, detail: waitingZones === 0 ? "all are published" : `${waitingZones} are being published` }
        : { ready: false, detail: `${failedZones} could not be published` },
    api: { ready: true, detail: `${plane.api.requestsUnderWay()} requests under way` },
    ...plane.cluster?.readiness(),
  };
}

function servedZones({ store }: ControlPlane): ServedZones {
  const first = store.list("zone", { limit: SERVED_ZONES_NAMED });
  return {
    count: store.count("zone"),
    first: first.map(({ body: { name } }) => ({
      name,
      records: store.count("record", name),
      serial: store.serialOf(name) ?? 0,
    })),
  };
}

function reportZoneFiles({ imported, left, warnings }: ZoneFilesReport, log: Log): void {
  for (const warning of warnings) log("warn", warning);
  for (const { name, file, records } of imported) log("info", `imported zone ${name} from ${file}`, { records });
  for (const { name, file } of left) log("info", `zone ${name} is stored already; ${file} is left alone`);
}

/** The address with the port in use. Throws OperatorError. */
async function listen(server: Server, address: Address): Promise<Address> {
  try {
    server.listen({ host: hostText(address), port: address.port, ipv6Only: true });
    await once(server, "listening");
  } catch (error) {
    throw bindFailure("management", address, error);
  }
  const bound = server.address();
  return { bytes: address.bytes, port: bound !== null && typeof bound === "object" ? bound.port : address.port };
}

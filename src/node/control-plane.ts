/** What runs in the control thread: the store, its way into the image, and the API; opened and closed in order. */

import type { ApiServer } from "../api/server.ts";
import { readConfig } from "../commands/config-documents.ts";
import type { CommandContext } from "../commands/run.ts";
import { openImageWriter } from "../image/writer.ts";
import type { Address } from "../listen/address.ts";
import type { Notifier } from "../notify/notifier.ts";
import { openStorePublisher, type StorePublisher } from "../publish/store-publisher.ts";
import { type NodeStore, openStore } from "../store/open-store.ts";
import { createClockGuard } from "./clock-guard.ts";
import { registerCluster } from "./cluster-metrics.ts";
import type { ClusterPlane } from "./cluster-plane.ts";
import { ALONE, type ControlPlaneOptions } from "./control-options.ts";
import { createEventLog } from "./event-log.ts";
import { type HealthPlane, openHealthPlane } from "./health-plane.ts";
import { openNotifier } from "./notify-plane.ts";
import { createPartLog } from "./part-log.ts";
import { openQueryLog, type QueryLog } from "./query-log.ts";
import { openResolvePlane } from "./resolve-plane.ts";
import { registerSecure } from "./secure-metrics.ts";
import { createSecurePlane, type SecurePlane } from "./secure-plane.ts";
import { registerStore, timed } from "./store-metrics.ts";
import type { ZoneFilesReport } from "./zone-files.ts";

export type ControlPlane = {
  readonly store: NodeStore;
  readonly publisher: StorePublisher;
  readonly api: ApiServer;
  readonly imported: ZoneFilesReport;
  readonly queryLog: QueryLog;
  readonly secure: SecurePlane;
  /** Absent: the node has no cluster. */
  readonly cluster: ClusterPlane | undefined;
};

/** Zone files that cannot be imported; nothing else has been opened. */
export class ZoneFilesRefused extends Error {
  override readonly name = "ZoneFilesRefused";
  readonly report: ZoneFilesReport;

  constructor(report: ZoneFilesReport) {
    super(report.refused.join("; "));
    this.report = report;
  }
}

/**
 * Opens everything and resolves when all zones answer and the API listens; what is opened is left to `closing`. Throws
 * OperatorError and ZoneFilesRefused.
 */
export async function openControlPlane(
  options: ControlPlaneOptions,
  closing: AsyncDisposableStack,
): Promise<ControlPlane> {
  const { config, log, metrics, nodeId } = options;
  // First in, so that the last events are waited for when nothing else is open any more.
  const notifier = closing.use(openNotifier({ config, nodeId, registry: metrics.registry, log }));
  const opened = await openNodeStore(options);
  closing.use(opened);
  const clock = createClockGuard(createPartLog(log, "the clock"));
  const store = clock.guarded(timed(opened, metrics.registry));
  const context: CommandContext = { store, now: Date.now, log };
  const imported = await importZones(options, context);
  if (imported.refused.length > 0) throw new ZoneFilesRefused(imported);
  const health = openHealth(options, store, notifier);
  closing.use(health);
  const resolve = openResolvePlane({
    ...{ store, metrics, nodeId },
    shared: options.shared,
    resolve: options.resolve,
    listens: options.dns,
  });
  closing.use(resolve);
  const queryLog = openQueryLog({
    store,
    shared: options.shared,
    config,
    nodeId,
    version: options.version,
    metrics,
    log,
  });
  closing.use(queryLog);
  const publisher = openStorePublisher({
    store,
    writer: openImageWriter(options.shared),
    // A line for each of thousands of zones, where memory is full.
    log: createPartLog(log, "what is published"),
    region: config["node.region"],
    gates: health.gates,
    onRoutes: resolve.onRoutes,
  });
  closing.use(publisher);
  registerStore(opened, publisher, metrics.registry);
  await publisher.start();
  await health.published();
  options.onPublished();
  // All that an answer does not need is loaded when answers are there: it takes as long as 100,000 records.
  const appliedTiming = await readTiming(store, options);
  const cluster = await openCluster(options, opened, context, notifier, publisher);
  if (cluster !== undefined) {
    closing.use(cluster);
    clock.follow(cluster.clockAheadMs);
  }
  closing.use(await openPrimary(options, context, publisher, cluster));
  const secure = createSecurePlane(options.onTransport);
  const { openApi } = await import("./api-plane.ts");
  const { openExplainer } = await import("./explain-plane.ts");
  const explain = openExplainer({ options, store, health, publisher });
  const api = await openApi(
    options,
    context,
    {
      health: health.view,
      explain,
      appliedTiming,
      transportInForce: secure.inForce,
      blocklistInForce: publisher.blocklistInForce,
      debug: queryLog.debug,
      ...resolve,
      ...(cluster && { cluster: cluster.view, replicationListens: () => cluster.listens }),
      ...(cluster?.isComplete() === false && { synced: cluster.complete }),
    },
    closing,
  );
  // The API has made the certificate where none is configured.
  secure.follow(store);
  registerSecure(options.shared, metrics.registry);
  return { store, publisher, api, imported, queryLog, secure, cluster };
}

function openNodeStore({ config, keys, nodeId, log }: ControlPlaneOptions): Promise<NodeStore> {
  return openStore({
    directory: config["node.data_dir"],
    nodeId,
    secretKey: keys.store,
    ...(keys.formerStore === undefined ? {} : { previousFileKey: keys.formerStore }),
    auditRetentionDays: config["audit.retention_days"],
    log,
  });
}

/** As the cluster is about to read it, and before anybody can change it. */
async function readTiming(store: Pick<NodeStore, "get">, { config }: ControlPlaneOptions) {
  const { replicationTiming } = await import("./replication-readiness.ts");
  return readConfig(store, "replication", replicationTiming(config)).effective;
}

async function openCluster(
  { config, keys, metrics, version, log }: ControlPlaneOptions,
  store: NodeStore,
  context: CommandContext,
  { emit }: Notifier,
  { settled: published }: StorePublisher,
): Promise<ClusterPlane | undefined> {
  if (keys.cluster === undefined) return undefined;
  const { openClusterPlane } = await import("./cluster-plane.ts");
  const plane = await openClusterPlane({
    ...{ config, store, context, version, emit, published, log },
    keys: keys.cluster,
  });
  registerCluster(plane.parts, metrics.registry);
  return plane;
}

async function openPrimary(
  { shared, resolve: primary, config, metrics }: ControlPlaneOptions,
  context: CommandContext,
  publisher: StorePublisher,
  cluster: ClusterPlane | undefined,
): Promise<AsyncDisposable> {
  const { openPrimaryPlane } = await import("./primary-plane.ts");
  return openPrimaryPlane({
    ...{ context, shared, primary, publisher, metrics },
    directory: config["node.data_dir"],
    isMd5Enabled: config["dns.tsig_md5"],
    ...(cluster && { replicated: cluster.settled, caughtUp: cluster.caughtUp }),
  });
}

function openHealth(
  { shared, health, keys, nodeId, config, metrics, log }: ControlPlaneOptions,
  store: NodeStore,
  notifier: Notifier,
): HealthPlane {
  const logEvent = createEventLog(log);
  return openHealthPlane({
    store,
    shared,
    port: health,
    key: keys.health,
    nodeId,
    region: config["node.region"],
    areScriptsEnabled: config["script_checks.enabled"],
    onEvent: (event) => {
      logEvent(event);
      notifier.emit(event);
    },
    metrics,
    log,
  });
}

const NOTHING_IMPORTED: ZoneFilesReport = { imported: [], left: [], faults: [], warnings: [], refused: [] };

async function importZones({ zones }: ControlPlaneOptions, context: CommandContext): Promise<ZoneFilesReport> {
  if (zones.length === 0) return NOTHING_IMPORTED;
  const { importZoneFiles } = await import("./zone-files.ts");
  return await importZoneFiles(context, ALONE, zones);
}

/** The address of the API with the port in use. */
export function apiAddress({ api }: ControlPlane, asked: Address): Address {
  return { bytes: asked.bytes, port: api.port };
}

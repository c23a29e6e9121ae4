/** The table of all routes: what a node serves, and what tests walk. */
import type { BlocklistTools } from "../commands/blocklist.ts";
import type { CacheView } from "../commands/cache.ts";
import type { ClusterView } from "../commands/cluster-view.ts";
import { followConfig } from "../commands/config-documents.ts";
import type { DebugView } from "../commands/debug.ts";
import type { Explainer } from "../commands/explain.ts";
import type { HealthView } from "../commands/health-view.ts";
import type { Idp } from "../commands/idp.ts";
import type { ImportTools } from "../commands/import-zones.ts";
import type { CommandContext } from "../commands/run.ts";
import type { SignIn } from "../commands/sign-in.ts";
import type { NodeListeners } from "../model/node.ts";
import type { IsOwnSocket } from "../model/upstreams.ts";
import type { Store } from "../store/store.ts";
import type { RateClass } from "./rate-limiter.ts";
import type { Route } from "./route.ts";
import { auditRoutes } from "./routes/audit.ts";
import { authRoutes } from "./routes/auth.ts";
import { blocklistRoutes } from "./routes/blocklist.ts";
import { cacheRoutes } from "./routes/cache.ts";
import { clusterRoutes } from "./routes/cluster.ts";
import { configRoutes, type ReplicationTiming } from "./routes/config.ts";
import { conflictRoutes } from "./routes/conflicts.ts";
import { debugRoutes } from "./routes/debug.ts";
import { explainRoutes } from "./routes/explain.ts";
import { exportRoutes } from "./routes/export.ts";
import { forwarderRoutes } from "./routes/forwarders.ts";
import { healthRoutes } from "./routes/health.ts";
import { healthCheckRoutes } from "./routes/health-checks.ts";
import { idpRoutes } from "./routes/idp.ts";
import { importRoutes } from "./routes/import.ts";
import { nodeRoutes } from "./routes/nodes.ts";
import { overrideRoutes } from "./routes/overrides.ts";
import { recordRoutes } from "./routes/records.ts";
import { regionRoutes } from "./routes/regions.ts";
import { serviceAccountRoutes } from "./routes/service-accounts.ts";
import { statsRoutes } from "./routes/stats.ts";
import { stubZoneRoutes } from "./routes/stub-zones.ts";
import { subnetMappingRoutes } from "./routes/subnet-mappings.ts";
import { tsigKeyRoutes } from "./routes/tsig-keys.ts";
import { userRoutes } from "./routes/users.ts";
import { zoneRoutes } from "./routes/zones.ts";

export type RouteParts = {
  readonly context: CommandContext;
  readonly signIn: SignIn;
  readonly idp: Idp;
  readonly importTools: Omit<ImportTools, "peers">;
  /** The region of this node, where it has one. */
  readonly nodeRegion?: string | undefined;
  /** Whether this node's configuration lets scripts be health checks. */
  readonly areScriptsEnabled: boolean;
  /** Whether it takes keys of HMAC-MD5; absent: no. */
  readonly isTsigMd5Enabled?: boolean;
  readonly health: HealthView;
  readonly explain: Explainer;
  /** Whether a socket is one that this node answers DNS on. */
  readonly isOwnSocket: IsOwnSocket;
  readonly cache: CacheView;
  readonly debug: DebugView;
  readonly blocklist: BlocklistTools;
  /** The other nodes; its `peersAlive` says whether a new zone waits for them. */
  readonly cluster: ClusterView;
  readonly replicationTiming?: ReplicationTiming;
  /** Resolves when listeners are where /transport-config has them, or could not be in time. */
  readonly transportInForce?: () => Promise<void>;
  /** Where this node listens, with the ports in use. */
  readonly listeners: () => NodeListeners;
};

/** Every route of the API below /api/v1, but the one of its own document, which the server adds. */
export function apiRoutes(parts: RouteParts): readonly Route[] {
  const { context, signIn, idp, nodeRegion, cluster, areScriptsEnabled, health, explain } = parts;
  const { isTsigMd5Enabled = false } = parts;
  const importTools = { ...parts.importTools, peers: cluster };
  return [
    ...authRoutes(signIn),
    ...idpRoutes(idp),
    ...exportRoutes(context),
    ...importRoutes(context, importTools),
    ...zoneRoutes(context, cluster),
    ...recordRoutes(context),
    ...overrideRoutes(context),
    ...healthCheckRoutes({ ...context, areScriptsEnabled }),
    ...healthRoutes(context, health),
    ...explainRoutes(explain),
    ...userRoutes(signIn),
    ...serviceAccountRoutes(signIn),
    ...tsigKeyRoutes({ ...context, isTsigMd5Enabled }),
    ...subnetMappingRoutes(context),
    ...regionRoutes(context, nodeRegion),
    ...forwarderRoutes({ ...context, isOwnSocket: parts.isOwnSocket }),
    ...stubZoneRoutes({ ...context, isOwnSocket: parts.isOwnSocket }),
    ...blocklistRoutes(context, parts.blocklist),
    ...cacheRoutes(context, parts.cache),
    ...debugRoutes(context, parts.debug),
    ...configRoutes(context, parts.replicationTiming, parts.transportInForce),
    ...auditRoutes(context),
    ...nodeRoutes(context, cluster, parts.listeners),
    ...clusterRoutes(context, cluster),
    ...conflictRoutes({ ...context, areScriptsEnabled, isOwnSocket: parts.isOwnSocket, peers: cluster }),
    ...statsRoutes(context, cluster),
  ];
}

/** The limits of requests a minute as /config/rate-limits has them at each moment. */
export function configuredRateLimit(store: Pick<Store, "get" | "onChange">): (rateClass: RateClass) => number {
  const reading = followConfig(store, "rate-limits");
  return (rateClass) => reading().effective[rateClass];
}

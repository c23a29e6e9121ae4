/** The API of a node and what stands behind it. */
import { ownNames } from "../api/certificate.ts";
import { createApiMetrics } from "../api/metrics.ts";
import { type ApiServer, startApiServer } from "../api/server.ts";
import { apiRoutes, configuredRateLimit } from "../api/table.ts";
import { errorText } from "../base/errors.ts";
import { systemTimers } from "../cluster/system-timers.ts";
import { authenticateHeaders } from "../commands/authenticate.ts";
import { openBlocklistKeeper } from "../commands/blocklist-keeper.ts";
import type { CacheView } from "../commands/cache.ts";
import { loneCluster } from "../commands/cluster.ts";
import type { ClusterView } from "../commands/cluster-view.ts";
import type { DebugView } from "../commands/debug.ts";
import type { Explainer } from "../commands/explain.ts";
import { createFirstAdmin } from "../commands/first-admin.ts";
import type { HealthView } from "../commands/health-view.ts";
import { createIdp } from "../commands/idp.ts";
import type { CommandContext } from "../commands/run.ts";
import { createSignIn } from "../commands/sign-in.ts";
import { addressToText, hostText } from "../listen/address.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import type { IsOwnSocket } from "../model/upstreams.ts";
import type { ControlPlaneOptions } from "./control-options.ts";
import { createImportThread } from "./import-thread.ts";
import { replicationTiming } from "./replication-readiness.ts";

/** What the API shows of other parts of the node. */
export type ApiViews = {
  readonly health: HealthView;
  readonly explain: Explainer;
  readonly cache: CacheView;
  readonly debug: DebugView;
  readonly isOwnSocket: IsOwnSocket;
  /** Absent: the node has no cluster. */
  readonly cluster?: ClusterView;
  /** Where peers reach it, with the port in use. */
  readonly replicationListens?: () => string;
  /** Resolves once this node holds what the cluster holds; absent where it needs nothing of others. */
  readonly synced?: Promise<void>;
  /** What the node runs by since it started. */
  readonly appliedTiming: ConfigSettings<"replication">;
  /** See SecurePlane. */
  readonly transportInForce: () => Promise<void>;
  /** See StorePublisher. */
  readonly blocklistInForce: () => Promise<void>;
};

/** Opens the API over a store that is served, with the admin that it needs at the first start. */
export async function openApi(
  options: ControlPlaneOptions,
  context: CommandContext,
  { blocklistInForce, appliedTiming, cluster = loneNode(options), replicationListens, synced, ...views }: ApiViews,
  closing: AsyncDisposableStack,
): Promise<ApiServer> {
  const { config, keys, api, metrics, probe, version } = options;
  const serviceAccountScope = config["auth.service_account_scope"];
  const signIn = createSignIn({ context, signingKey: keys.signing, serviceAccountScope });
  closing.defer(signIn.close);
  const imports = closing.use(createImportThread());
  closing.use(openBlocklistKeeper(context));
  const observing = createApiMetrics(metrics.registry);
  const certFile = config["api.tls_cert_file"];
  const keyFile = config["api.tls_key_file"];
  const server = await startApiServer({
    context,
    routes: apiRoutes({
      context,
      signIn,
      idp: createIdp(signIn),
      importTools: { parse: imports.parse },
      nodeRegion: config["node.region"],
      areScriptsEnabled: config["script_checks.enabled"],
      isTsigMd5Enabled: config["dns.tsig_md5"],
      ...views,
      blocklist: { read: imports.readBlocklist, inForce: blocklistInForce },
      cluster,
      replicationTiming: { zeros: replicationTiming(config), applied: appliedTiming },
      listeners: () => ({
        dns: options.dns.map(addressToText),
        api: addressToText({ bytes: api.bytes, port: server.port }),
        management: addressToText(options.managementListens),
        replication: replicationListens?.() ?? null,
      }),
    }),
    authenticate: (headers) => authenticateHeaders(signIn, headers),
    listen: { host: hostText(api), port: api.port },
    certificate:
      certFile !== undefined && keyFile !== undefined
        ? { kind: "files", certFile, keyFile }
        : { kind: "self-made", directory: config["node.data_dir"], names: ownNames(hostText(api)) },
    rateLimit: configuredRateLimit(context.store),
    trustedProxies: config["api.trusted_proxies"],
    allowedOrigins: config["api.allowed_origins"],
    probe,
    observe: observing.observe,
    version,
  });
  closing.use(server);
  observing.follow(server);
  await makeFirstAdmin(options, context, cluster, synced);
  return server;
}

/** Its password is printed once, so not before everything that can fail at a start has gone well. */
async function makeFirstAdmin(
  { config, log, onAdminPassword: onPassword }: ControlPlaneOptions,
  context: CommandContext,
  { nodes }: ClusterView,
  synced: ApiViews["synced"],
): Promise<void> {
  const admin = createFirstAdmin({
    ...{ context, onPassword, initialPassword: config["auth.initial_admin_password"], after: systemTimers.after },
    aliveNodes: () => nodes().flatMap(({ id, state }) => (state === "alive" ? [id] : [])),
  });
  await admin.atStart(synced !== undefined);
  synced?.then(admin.afterSync).catch((error: unknown) => log("error", `no first admin: ${errorText(error)}`));
}

function loneNode({ nodeId, config, version }: ControlPlaneOptions): ClusterView {
  return loneCluster({ id: nodeId, region: config["node.region"] ?? "", version });
}

/** What runs in the control thread: the store, its way into the image, and the API; opened and closed in order. */

import { ownNames } from "../api/certificate.ts";
import { createApiMetrics } from "../api/metrics.ts";
import { type ApiServer, type ProbeAnswer, type ProbePath, startApiServer } from "../api/server.ts";
import { apiRoutes } from "../api/table.ts";
import type { Log } from "../base/log.ts";
import { authenticateHeaders } from "../commands/authenticate.ts";
import { followConfig } from "../commands/config-documents.ts";
import { ensureAdmin } from "../commands/first-admin.ts";
import { createIdp } from "../commands/idp.ts";
import type { CommandContext } from "../commands/run.ts";
import { createSignIn } from "../commands/sign-in.ts";
import type { SharedImage } from "../image/shared.ts";
import { openImageWriter } from "../image/writer.ts";
import { type Address, hostText } from "../listen/address.ts";
import { openStorePublisher, type StorePublisher } from "../publish/store-publisher.ts";
import { type NodeStore, openStore } from "../store/open-store.ts";
import type { ZoneArgument } from "./arguments.ts";
import type { Config } from "./config.ts";
import { createImportThread } from "./import-thread.ts";
import type { NodeKeys } from "./keys.ts";
import type { NodeMetrics } from "./metrics.ts";
import { registerStore, timed } from "./store-metrics.ts";
import { importZoneFiles, type ZoneFilesReport } from "./zone-files.ts";

export type ControlPlaneOptions = {
  readonly config: Config;
  readonly nodeId: string;
  readonly keys: NodeKeys;
  readonly shared: SharedImage;
  /** Where the API listens: the configured address, or for a replacement the one that is known already. */
  readonly api: Address;
  /** Zone files to import where their zones are not stored. */
  readonly zones: readonly ZoneArgument[];
  readonly version: string;
  readonly metrics: NodeMetrics;
  readonly probe: (path: ProbePath) => Promise<ProbeAnswer>;
  readonly log: Log;
  /** Called with the admin's password where this was the first start and the node has drawn one. */
  readonly onAdminPassword: (password: string) => void;
  /** Called when all zones are in the image. */
  readonly onPublished: () => void;
};

export type ControlPlane = {
  readonly store: NodeStore;
  readonly publisher: StorePublisher;
  readonly api: ApiServer;
  readonly imported: ZoneFilesReport;
};

/** Until replication has peers, a node is alone: what it takes is active at once. */
const ALONE = { peersAlive: () => 0 };
const ONE_NODE = () => 1;

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
  const { config, keys, log, metrics } = options;
  const opened = await openStore({
    directory: config["node.data_dir"],
    nodeId: options.nodeId,
    secretKey: keys.store,
    ...(keys.formerStore === undefined ? {} : { previousFileKey: keys.formerStore }),
    auditRetentionDays: config["audit.retention_days"],
    log,
  });
  closing.use(opened);
  const store = timed(opened, metrics.registry);
  const context: CommandContext = { store, now: Date.now, log };
  const imported = await importZoneFiles(context, ALONE, options.zones);
  if (imported.refused.length > 0) throw new ZoneFilesRefused(imported);
  const password = await ensureAdmin(context, { initialPassword: config["auth.initial_admin_password"] });
  if (password !== undefined) options.onAdminPassword(password);
  const publisher = openStorePublisher({ store, writer: openImageWriter(options.shared), log });
  closing.use(publisher);
  registerStore(opened, publisher, metrics.registry);
  await publisher.start();
  options.onPublished();
  const api = await openApi(options, context, closing);
  return { store, publisher, api, imported };
}

async function openApi(
  { config, keys, api, metrics, probe, version }: ControlPlaneOptions,
  context: CommandContext,
  closing: AsyncDisposableStack,
): Promise<ApiServer> {
  const serviceAccountScope = config["auth.service_account_scope"];
  const signIn = createSignIn({ context, signingKey: keys.signing, serviceAccountScope });
  closing.defer(signIn.close);
  const imports = closing.use(createImportThread());
  const limits = followConfig(context.store, "rate-limits");
  const observing = createApiMetrics(metrics.registry);
  const certFile = config["api.tls_cert_file"];
  const keyFile = config["api.tls_key_file"];
  const server = await startApiServer({
    context,
    routes: apiRoutes({
      context,
      signIn,
      idp: createIdp(signIn),
      importTools: { parse: imports.parse, peers: ALONE },
      nodeRegion: config["node.region"],
      nodeCount: ONE_NODE,
    }),
    authenticate: (headers) => authenticateHeaders(signIn, headers),
    listen: { host: hostText(api), port: api.port },
    certificate:
      certFile !== undefined && keyFile !== undefined
        ? { kind: "files", certFile, keyFile }
        : { kind: "self-made", directory: config["node.data_dir"], names: ownNames(hostText(api)) },
    rateLimit: (rateClass) => limits().effective[rateClass],
    trustedProxies: config["api.trusted_proxies"],
    allowedOrigins: config["api.allowed_origins"],
    probe,
    observe: observing.observe,
    version,
  });
  closing.use(server);
  observing.follow(server);
  return server;
}

/** The address of the API with the port in use. */
export function apiAddress({ api }: ControlPlane, asked: Address): Address {
  return { bytes: asked.bytes, port: api.port };
}

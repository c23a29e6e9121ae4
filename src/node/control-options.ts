/** What the parts of the control thread are opened with. */
import type { ProbeAnswer, ProbePath } from "../api/server.ts";
import type { Log } from "../base/log.ts";
import type { FromHealth, HealthPort, ToHealth } from "../health/messages.ts";
import type { SharedImage } from "../image/shared.ts";
import type { Address } from "../listen/address.ts";
import type { ZoneArgument } from "./arguments.ts";
import type { Config } from "./config.ts";
import type { NodeKeys } from "./keys.ts";
import type { NodeMetrics } from "./metrics.ts";
import type { PrimaryEnd } from "./primary-plane.ts";
import type { ResolveEnd } from "./resolve-plane.ts";
import type { SecureWish } from "./secure-thread.ts";

export type ControlPlaneOptions = {
  readonly config: Config;
  readonly nodeId: string;
  readonly keys: NodeKeys;
  readonly shared: SharedImage;
  /** Index of this thread among those that read the image, for answers that it explains. */
  readonly thread: number;
  /** Where the API listens: the configured address, or for a replacement the one that is known already. */
  readonly api: Address;
  /** Where the management listener listens, with the port in use. */
  readonly managementListens: Address;
  /** Zone files to import where their zones are not stored. */
  readonly zones: readonly ZoneArgument[];
  readonly version: string;
  readonly metrics: NodeMetrics;
  readonly probe: (path: ProbePath) => Promise<ProbeAnswer>;
  /** The health thread, whichever runs: a replacement says "ready". */
  readonly health: HealthPort<ToHealth, FromHealth>;
  /** The thread that resolves and answers updaters and secondaries, whichever runs. */
  readonly resolve: ResolveEnd & PrimaryEnd;
  /** Sockets that this node answers DNS on, with the ports in use. */
  readonly dns: readonly Address[];
  readonly log: Log;
  /** Called with the admin's password where this was the first start and the node has drawn one. */
  readonly onAdminPassword: (password: string) => void;
  /** Called when all zones are in the image. */
  readonly onPublished: () => void;
  /** Called with where DNS over TLS and HTTPS are wanted, whenever that changes. */
  readonly onTransport: (wish: SecureWish) => void;
};

/** Until replication has peers, a node is alone: what it takes is active at once. */
export const ALONE = { peersAlive: () => 0 };

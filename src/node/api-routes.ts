/** The table of everything that the API answers. */

import type { Route } from "../api/route.ts";
import { auditRoutes } from "../api/routes/audit.ts";
import { authRoutes } from "../api/routes/auth.ts";
import { configRoutes } from "../api/routes/config.ts";
import { exportRoutes } from "../api/routes/export.ts";
import { idpRoutes } from "../api/routes/idp.ts";
import { importRoutes } from "../api/routes/import.ts";
import { overrideRoutes } from "../api/routes/overrides.ts";
import { recordRoutes } from "../api/routes/records.ts";
import { regionRoutes } from "../api/routes/regions.ts";
import { serviceAccountRoutes } from "../api/routes/service-accounts.ts";
import { statsRoutes } from "../api/routes/stats.ts";
import { subnetMappingRoutes } from "../api/routes/subnet-mappings.ts";
import { tsigKeyRoutes } from "../api/routes/tsig-keys.ts";
import { userRoutes } from "../api/routes/users.ts";
import { zoneRoutes } from "../api/routes/zones.ts";
import { createIdp } from "../commands/idp.ts";
import type { ImportTools } from "../commands/import-zones.ts";
import type { SignIn } from "../commands/sign-in.ts";

export type RouteTools = {
  readonly signIn: SignIn;
  readonly imports: ImportTools;
  readonly region: string | undefined;
  /** How many nodes the cluster has, this one included. */
  readonly nodeCount: () => number;
};

/** In the order of the documentation. */
export function apiRoutes({ signIn, imports, region, nodeCount }: RouteTools): readonly Route[] {
  const { context } = signIn;
  return [
    ...authRoutes(signIn),
    ...idpRoutes(createIdp(signIn)),
    ...zoneRoutes(context, imports.peers),
    ...recordRoutes(context),
    ...overrideRoutes(context),
    ...importRoutes(context, imports),
    ...exportRoutes(context),
    ...regionRoutes(context, region),
    ...subnetMappingRoutes(context),
    ...tsigKeyRoutes(context),
    ...userRoutes(signIn),
    ...serviceAccountRoutes(signIn),
    ...configRoutes(context),
    ...auditRoutes(context),
    ...statsRoutes(context, nodeCount),
  ];
}

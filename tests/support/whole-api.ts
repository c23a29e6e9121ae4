/** The API with every route over a real store: what a node serves, without the rest of a node. */
import assert from "node:assert/strict";
import type { Route } from "../../src/api/route.ts";
import { apiRoutes } from "../../src/api/table.ts";
import { createIdp } from "../../src/commands/idp.ts";
import type { CommandContext } from "../../src/commands/run.ts";
import { createSignIn, type SignIn } from "../../src/commands/sign-in.ts";
import { createImportThread } from "../../src/node/import-thread.ts";
import { startApi, type TestApi, type TestApiOptions } from "./api.ts";
import { explainerOver } from "./explainer.ts";
import { fakeCache } from "./fake-cache.ts";
import { createFakeCluster, type FakeCluster, TEST_LISTENERS } from "./fake-cluster.ts";
import { fakeDebug } from "./fake-debug.ts";
import { type HealthLab, openHealthLab } from "./health-plane.ts";

export type WholeApi = TestApi & { readonly routes: readonly Route[] };

/** Starts all of it on a free port; tokens are those of `startApi`. */
export async function startWholeApi({
  cluster = createFakeCluster(),
  ...options
}: TestApiOptions & { readonly cluster?: FakeCluster } = {}): Promise<WholeApi> {
  const thread = createImportThread();
  let signIn: SignIn | undefined;
  let routes: readonly Route[] = [];
  let health: HealthLab | undefined;
  const routesOf = (context: CommandContext): readonly Route[] => {
    health = openHealthLab(context.store, { areScriptsEnabled: true });
    signIn = createSignIn({ context, signingKey: new Uint8Array(32).fill(7), serviceAccountScope: "issuing-node" });
    routes = apiRoutes({
      context,
      signIn,
      idp: createIdp(signIn, 1),
      importTools: { parse: thread.parse },
      blocklist: { read: thread.readBlocklist, inForce: async () => {} },
      areScriptsEnabled: true,
      health: health.view,
      explain: explainerOver({ store: context.store, health }),
      isOwnSocket: () => false,
      cache: fakeCache(),
      debug: fakeDebug(),
      cluster,
      listeners: () => TEST_LISTENERS,
    });
    return routes;
  };
  const api = await startApi(routesOf, options);
  assert.ok(routes.length > 0);
  return {
    ...api,
    routes,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      health?.[Symbol.dispose]();
      signIn?.close();
      await thread[Symbol.asyncDispose]();
    },
  };
}

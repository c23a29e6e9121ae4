/** /forwarders: who is asked for names that this node does not hold; the default forwarder and its hardening are documents of settings. */
import { createForwarder, type ForwardContext, updateForwarder } from "../../commands/forward-routes.ts";
import { forwarderScan } from "../../commands/list-filters.ts";
import { ownSocketFaults } from "../../model/forward-domain.ts";
import { ForwarderCreate, ForwarderUpdate, ForwarderView } from "../../model/forwarder.ts";
import type { Route } from "../route.ts";
import { documentRoutes } from "./config.ts";
import { forwardRoutes } from "./forward-routes.ts";

/** The routes of /forwarders. */
export function forwarderRoutes(context: ForwardContext): readonly Route[] {
  return [
    // Where a node's addresses have changed, the forwarder must still be able to be disabled.
    ...documentRoutes(context, "default-forwarder", {
      faultsOf: ({ enabled, upstreams }) =>
        enabled ? ownSocketFaults("/upstreams", upstreams, context.isOwnSocket) : [],
    }),
    ...documentRoutes(context, "hardening"),
    ...forwardRoutes(context, {
      kind: "forwarder",
      tag: "forwarders",
      noun: "conditional forwarder",
      server: "an upstream",
      shapes: { create: ForwarderCreate, update: ForwarderUpdate, view: ForwarderView },
      scan: forwarderScan,
      create: createForwarder,
      update: updateForwarder,
    }),
  ];
}

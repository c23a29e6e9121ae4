/** /stub-zones: domains that are resolved from their own name servers on. */
import { createStubZone, type ForwardContext, updateStubZone } from "../../commands/forward-routes.ts";
import { stubZoneScan } from "../../commands/list-filters.ts";
import { StubZoneCreate, StubZoneUpdate, StubZoneView } from "../../model/stub-zone.ts";
import type { Route } from "../route.ts";
import { forwardRoutes } from "./forward-routes.ts";

/** The routes of /stub-zones. */
export function stubZoneRoutes(context: ForwardContext): readonly Route[] {
  return forwardRoutes(context, {
    kind: "stub-zone",
    tag: "stub-zones",
    noun: "stub zone",
    server: "a hint",
    shapes: { create: StubZoneCreate, update: StubZoneUpdate, view: StubZoneView },
    scan: stubZoneScan,
    create: createStubZone,
    update: updateStubZone,
  });
}

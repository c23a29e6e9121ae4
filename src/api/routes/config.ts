/** /config/*, /transport-config and /observability/otlp: the settings that hold for the whole cluster. */
import { type ConfigOfNode, putConfig, readConfig, viewConfig } from "../../commands/config-documents.ts";
import type { CommandContext } from "../../commands/run.ts";
import { type ConfigZeros, configUpdateSchema, configViewSchema } from "../../model/config-documents.ts";
import type { ConfigName, ConfigSettings } from "../../model/config-schemas.ts";
import type { Role } from "../../model/objects.ts";
import { type Route, route } from "../route.ts";

/** Where a document is, what it is called in the documentation, and who may read and write it. */
type Place = {
  readonly path: string;
  readonly title: string;
  readonly tag?: string;
  readonly read?: Role;
  readonly write?: Role;
};

const DOCUMENTS: { readonly [Name in ConfigName]: Place } = {
  "rate-limits": { path: "/config/rate-limits", title: "the limits of requests a minute" },
  "delete-guardrails": { path: "/config/delete-guardrails", title: "the guardrails of deletions" },
  "region-discovery": { path: "/config/region-discovery", title: "how regions are discovered" },
  axfr: { path: "/config/axfr", title: "zone transfers and NOTIFY" },
  "query-log": { path: "/config/query-log", title: "the log of queries" },
  "dynamic-dns": { path: "/config/dynamic-dns", title: "dynamic updates" },
  cache: { path: "/config/cache", title: "the cache of forwarded answers" },
  recursion: { path: "/config/recursion", title: "whom names are resolved for that are not ours" },
  replication: { path: "/config/replication", title: "the timing of replication, which nodes read when they start" },
  "health-probe-policy": { path: "/config/health-probe-policy", title: "what health probes may do" },
  "private-endpoints": { path: "/config/private-endpoints", title: "the automation of private endpoints" },
  transport: { path: "/transport-config", title: "DNS over TLS and over HTTPS" },
  otlp: { path: "/observability/otlp", title: "the export of metrics" },
  "default-forwarder": {
    path: "/forwarders/default",
    title: "the default forwarder, for names that nothing else matches",
    tag: "forwarders",
    write: "editor",
  },
  hardening: {
    path: "/forwarders/hardening",
    title: "how answers of the default forwarder are hardened",
    tag: "forwarders",
    read: "admin",
  },
};

/** The timing of replication as a matter of this node. */
export type ReplicationTiming = {
  /** What its own configuration says, where /config/replication says nothing. */
  readonly zeros?: ConfigZeros<"replication">;
  /** What it has read at its start, and runs by; left out: what is configured now. */
  readonly applied?: ConfigSettings<"replication">;
};

/** The routes of the documents that are about settings and nothing else. */
export function configRoutes(
  context: CommandContext,
  { zeros, applied = readConfig(context.store, "replication", zeros).effective }: ReplicationTiming = {},
  transportInForce?: () => Promise<void>,
): readonly Route[] {
  return [
    ...CONFIG_NAMES.flatMap((name) => documentRoutes(context, name)),
    ...documentRoutes(context, "transport", {}, transportInForce),
    ...documentRoutes(context, "replication", { zeros, applied }),
  ];
}

const CONFIG_NAMES: readonly ConfigName[] = [
  "rate-limits",
  "delete-guardrails",
  "region-discovery",
  "axfr",
  "query-log",
  "dynamic-dns",
  "cache",
  "recursion",
  "health-probe-policy",
  "private-endpoints",
  "otlp",
];

/** The routes of one document. A change is acknowledged when `inForce` has resolved. */
export function documentRoutes<Name extends ConfigName>(
  context: CommandContext,
  name: Name,
  ofNode: ConfigOfNode<Name> = {},
  inForce: () => Promise<void> = async () => undefined,
): readonly Route[] {
  const { path, title, tag = "configuration", read = "readonly", write = "admin" } = DOCUMENTS[name];
  const response = configViewSchema(name);
  return [
    route({
      method: "GET",
      path,
      summary: `Read ${title}: as configured, and under "effective" as applied`,
      tag,
      access: read,
      response,
      handle: () => {
        const { view, etag } = viewConfig(context.store, name, ofNode);
        return { headers: etag === undefined ? {} : { etag }, body: view };
      },
    }),
    route({
      method: "PUT",
      path,
      summary: `Change the fields given of ${title}; null leaves a field to its default`,
      tag,
      access: write,
      body: configUpdateSchema(name),
      response,
      handle: async ({ body, caller }) => {
        const { view, etag } = await putConfig(context, caller, name, body, ofNode);
        if (!caller.dryRun) await inForce();
        return { headers: etag === undefined || caller.dryRun ? {} : { etag }, body: view };
      },
    }),
  ];
}

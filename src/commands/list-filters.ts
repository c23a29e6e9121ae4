/** What the lists of zones, records, overrides, health checks, forwarders and stub zones can be asked for. A filter that fits nothing gives an empty list. */
import { healthCheckName } from "../model/health-check.ts";
import { absoluteName, anyFullName, relativeName, relativeTo } from "../model/names.ts";
import type {
  ForwarderBody,
  HealthCheckBody,
  OverrideBody,
  RecordBody,
  RecordType,
  StubZoneBody,
} from "../model/objects.ts";
import type { Stored } from "../store/store.ts";
import type { ScanOptions } from "./scan.ts";

export type ZoneFilter = {
  /** The whole name, with or without its last dot. */
  readonly name?: string;
  /** Part of the name. */
  readonly q?: string;
};

export type RecordFilter = {
  /** The whole name, relative as it is stored, or full with its last dot. */
  readonly name?: string;
  readonly type?: RecordType;
  /** Part of the full name, of a value or of the comment. */
  readonly q?: string;
};

function fullNameKey(name: string): string | undefined {
  const outcome = anyFullName(name);
  return outcome.kind === "name" ? outcome.text : undefined;
}

function ownerKey(name: string, zone: string): string | undefined {
  const full = name.endsWith(".") ? fullNameKey(name) : undefined;
  if (full !== undefined) return relativeTo(full, zone);
  const outcome = relativeName(name, zone);
  return outcome.kind === "name" ? outcome.text : undefined;
}

/** Part of a text, in any case of ASCII letters. */
function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part);
}

function allOf<T>(tests: readonly (((item: T) => boolean) | undefined)[]): ((item: T) => boolean) | undefined {
  const given = tests.filter((test) => test !== undefined);
  return given.length === 0 ? undefined : (item) => given.every((test) => test(item));
}

/** Where the zones that the filter keeps are found, and how they are told; undefined: no zone can have such a name. */
export function zoneScan({ name, q }: ZoneFilter): ScanOptions<"zone"> | undefined {
  const key = name === undefined ? undefined : fullNameKey(name);
  if (name !== undefined && key === undefined) return undefined;
  const part = q?.toLowerCase();
  return {
    ...(key === undefined ? {} : { prefix: [key] }),
    accept: part === undefined ? undefined : ({ body }) => holds(body.name, part),
  };
}

type AnyRecord = RecordBody | OverrideBody;

function mentions(record: AnyRecord, fullName: string, part: string): boolean {
  if (holds(fullName, part)) return true;
  if (record.comment !== undefined && holds(record.comment, part)) return true;
  return record.values.some(({ value }) => holds(value, part));
}

/** The same for the records of the zone with that name. A name is found by key, whatever the zone's size. */
export function recordScan(zone: string, { name, type, q }: RecordFilter): ScanOptions<"record"> | undefined {
  const owner = name === undefined ? undefined : ownerKey(name, zone);
  if (name !== undefined && owner === undefined) return undefined;
  const part = q?.toLowerCase();
  return {
    prefix: owner === undefined ? [zone] : [zone, owner],
    accept: allOf<Stored<"record">>([
      type === undefined ? undefined : ({ body }) => body.type === type,
      part === undefined ? undefined : ({ body }) => mentions(body, absoluteName(body.name, zone), part),
    ]),
  };
}

/** The same for overrides. */
export function overrideScan({ name, type, q }: RecordFilter): ScanOptions<"override"> | undefined {
  const key = name === undefined ? undefined : fullNameKey(name);
  if (name !== undefined && key === undefined) return undefined;
  const part = q?.toLowerCase();
  return {
    ...(key === undefined ? {} : { prefix: [key] }),
    accept: allOf<Stored<"override">>([
      type === undefined ? undefined : ({ body }) => body.type === type,
      part === undefined ? undefined : ({ body }) => mentions(body, body.name, part),
    ]),
  };
}

export type HealthCheckFilter = {
  /** The whole name. */
  readonly name?: string;
  readonly protocol?: HealthCheckBody["protocol"];
  /** Part of the name, the target or the comment. */
  readonly q?: string;
};

/** The same for standalone health checks. */
export function healthCheckScan({ name, protocol, q }: HealthCheckFilter): ScanOptions<"healthcheck"> | undefined {
  const key = name === undefined ? undefined : healthCheckName(name);
  if (name !== undefined && key === undefined) return undefined;
  const part = q?.toLowerCase();
  return {
    ...(key === undefined ? {} : { prefix: [key] }),
    accept: allOf<Stored<"healthcheck">>([
      protocol === undefined ? undefined : ({ body }) => body.protocol === protocol,
      part === undefined
        ? undefined
        : ({ body }) => [body.name, body.target ?? "", body.comment ?? ""].some((text) => holds(text, part)),
    ]),
  };
}

export type DomainFilter = {
  /** The whole name, with or without its last dot. */
  readonly domain?: string;
  /** Part of the domain, of an upstream or of the comment. */
  readonly q?: string;
};

type Forwarding = Pick<ForwarderBody | StubZoneBody, "domain" | "comment"> & { readonly servers: readonly string[] };

function forwardScan<K extends "forwarder" | "stub-zone">(
  { domain, q }: DomainFilter,
  read: (stored: Stored<K>) => Forwarding,
): ScanOptions<K> | undefined {
  const key = domain === undefined ? undefined : fullNameKey(domain);
  if (domain !== undefined && key === undefined) return undefined;
  const part = q?.toLowerCase();
  const mentionsPart = (stored: Stored<K>): boolean => {
    const { domain: name, comment = "", servers } = read(stored);
    return part === undefined || [name, comment, ...servers].some((text) => holds(text, part));
  };
  return { ...(key === undefined ? {} : { prefix: [key] }), accept: part === undefined ? undefined : mentionsPart };
}

/** The same for conditional forwarders. */
export function forwarderScan(filter: DomainFilter): ScanOptions<"forwarder"> | undefined {
  return forwardScan(filter, ({ body }) => ({ ...body, servers: body.upstreams }));
}

/** The same for stub zones. */
export function stubZoneScan(filter: DomainFilter): ScanOptions<"stub-zone"> | undefined {
  return forwardScan(filter, ({ body }) => ({ ...body, servers: body.hints }));
}

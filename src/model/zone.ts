/** Zones: what a client may send, the rules between the fields, and what it gets to see. */
import { type Static, Type } from "typebox";
import { NameShape, orNull } from "./answer-fields.ts";
import { LbPolicyShape, zonePolicyFaults } from "./lb-policy.ts";
import { DEFAULT_TTL, ID_MAX, NAME_TEXT_MAX, SERIAL_MAX, TTL_MAX } from "./limits.ts";
import { fullName, hostName } from "./names.ts";
import type { Soa, ZoneBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";

const Seconds = Type.Integer({ minimum: 0, maximum: TTL_MAX });

const SOA_FIELDS = {
  mname: Type.Optional(NameShape),
  rname: Type.Optional(NameShape),
  refresh: Type.Optional(Seconds),
  retry: Type.Optional(Seconds),
  expire: Type.Optional(Seconds),
  minimum: Type.Optional(Seconds),
};
const Serial = Type.Integer({ minimum: 0, maximum: SERIAL_MAX });

export const ZoneCreate = Type.Object(
  {
    name: NameShape,
    default_ttl: Type.Optional(Seconds),
    soa: Type.Optional(Type.Object(SOA_FIELDS, { additionalProperties: false })),
    deletion_lock: Type.Optional(Type.Boolean()),
    lb_policy: Type.Optional(orNull(LbPolicyShape)),
  },
  {
    additionalProperties: false,
    examples: [{ name: "corp.example.", default_ttl: 300, soa: { mname: "ns1.corp.example." } }],
  },
);
export type ZoneCreate = Static<typeof ZoneCreate>;

const READ_ONLY_TEXT = Type.Optional(Type.String({ maxLength: NAME_TEXT_MAX, readOnly: true }));

export const ZoneUpdate = Type.Object(
  {
    default_ttl: Type.Optional(Seconds),
    soa: Type.Optional(Type.Object({ ...SOA_FIELDS, serial: Type.Optional(Serial) }, { additionalProperties: false })),
    deletion_lock: Type.Optional(Type.Boolean()),
    lb_policy: Type.Optional(orNull(LbPolicyShape)),
    clear_lb_policy: Type.Optional(Type.Boolean()),
    name: READ_ONLY_TEXT,
    id: READ_ONLY_TEXT,
    status: READ_ONLY_TEXT,
    created_at: READ_ONLY_TEXT,
    updated_at: READ_ONLY_TEXT,
    record_count: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, readOnly: true })),
    warnings: Type.Optional(Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 100, readOnly: true })),
  },
  { additionalProperties: false, examples: [{ default_ttl: 60, deletion_lock: true }] },
);
export type ZoneUpdate = Static<typeof ZoneUpdate>;

export const ZoneView = Type.Object({
  id: Type.String({ maxLength: ID_MAX }),
  name: Type.String(),
  default_ttl: Seconds,
  soa: Type.Object({
    mname: Type.String(),
    rname: Type.String(),
    serial: Serial,
    refresh: Seconds,
    retry: Seconds,
    expire: Seconds,
    minimum: Seconds,
  }),
  deletion_lock: Type.Boolean(),
  lb_policy: Type.Optional(LbPolicyShape),
  status: Type.Enum(["pending", "active"]),
  record_count: Type.Integer(),
  created_at: Type.String({ format: "date-time" }),
  updated_at: Type.String({ format: "date-time" }),
  warnings: Type.Optional(Type.Array(Type.String())),
});

export type ZoneViewDetails = ViewTimes & {
  readonly serial: number;
  readonly status: "pending" | "active";
  readonly recordCount: number;
};

export function zoneView(zone: ZoneBody, details: ZoneViewDetails): Record<string, unknown> {
  const { mname, rname, ...timers } = zone.soa;
  return {
    id: zone.id,
    name: zone.name,
    default_ttl: zone.default_ttl,
    soa: { mname, rname, serial: details.serial, ...timers },
    deletion_lock: zone.deletion_lock,
    ...(zone.lb_policy === undefined ? {} : { lb_policy: zone.lb_policy }),
    status: details.status,
    record_count: details.recordCount,
    created_at: details.createdAt,
    updated_at: details.updatedAt,
  };
}

const TIMERS = { refresh: 7200, retry: 900, expire: 1_209_600, minimum: 300 } as const;

/** What a zone has where its maker says nothing. `name` is canonical. */
export function defaultSoa(name: string): Soa {
  const below = name === "." ? "" : name;
  return { mname: `ns1.${below}`, rname: `hostmaster.${below}`, ...TIMERS };
}

/** The body of a new zone. Throws `invalid_request` with every fault. */
export function zoneFromCreate(
  given: ZoneCreate,
  id: string,
  defaults: { readonly deletionLock: boolean } = { deletionLock: false },
): ZoneBody {
  const name = fullName(given.name);
  const faults: FieldFault[] = [];
  if (name.kind === "fault") faults.push({ pointer: "/name", detail: name.detail });
  const soa = mergeSoa(defaultSoa(name.kind === "name" ? name.text : "."), given.soa, faults);
  // A long zone leaves no room for a label of ours, and then its maker has to name a server and a mailbox.
  for (const part of ["mname", "rname"] as const) {
    if (name.kind === "name" && given.soa?.[part] === undefined && hostName(soa[part]).kind === "fault") {
      faults.push({ pointer: `/soa/${part}`, detail: "is needed: the default does not fit into 255 bytes" });
    }
  }
  const lb_policy = given.lb_policy ?? undefined;
  if (lb_policy !== undefined) faults.push(...zonePolicyFaults(lb_policy));
  refuseFaults(faults);
  return {
    id,
    name: name.kind === "name" ? name.text : given.name,
    default_ttl: given.default_ttl ?? DEFAULT_TTL,
    soa,
    deletion_lock: given.deletion_lock ?? defaults.deletionLock,
    ...(lb_policy === undefined ? {} : { lb_policy }),
  };
}

const READ_ONLY = ["id", "name"];
const READ_ONLY_DETAILS = ["status", "created_at", "updated_at", "record_count"];

/**
 * The body after an update: `soa` merges by part, everything else is replaced whole. Throws `invalid_request` with every
 * fault. With `details` the read-only fields that they show are held against them, the serial too.
 */
export function zoneWithUpdate(current: ZoneBody, given: ZoneUpdate, details?: ZoneViewDetails): ZoneBody {
  const view = zoneView(
    current,
    details ?? { createdAt: "", updatedAt: "", serial: 0, status: "active", recordCount: 0 },
  );
  const faults = readOnlyFaults(view, given, details === undefined ? READ_ONLY : [...READ_ONLY, ...READ_ONLY_DETAILS]);
  if (details !== undefined) {
    const shown = readOnlyFaults({ serial: details.serial }, { ...given.soa }, ["serial"]);
    faults.push(...shown.map(({ pointer, detail }) => ({ pointer: `/soa${pointer}`, detail })));
  }
  const soa = mergeSoa(current.soa, given.soa, faults);
  const { lb_policy, clear_lb_policy } = given;
  if (clear_lb_policy === true && lb_policy !== undefined && lb_policy !== null) {
    faults.push({ pointer: "/clear_lb_policy", detail: "contradicts lb_policy, which is there too" });
  }
  if (lb_policy !== undefined && lb_policy !== null) faults.push(...zonePolicyFaults(lb_policy));
  refuseFaults(faults);
  const { lb_policy: former, ...rest } = current;
  const policy = clear_lb_policy === true || lb_policy === null ? undefined : (lb_policy ?? former);
  return {
    ...rest,
    default_ttl: given.default_ttl ?? current.default_ttl,
    soa,
    deletion_lock: given.deletion_lock ?? current.deletion_lock,
    ...(policy === undefined ? {} : { lb_policy: policy }),
  };
}

function mergeSoa(current: Soa, given: ZoneUpdate["soa"], faults: FieldFault[]): Soa {
  if (given === undefined) return current;
  return {
    mname: given.mname === undefined ? current.mname : soaName(given.mname, "mname", faults),
    rname: given.rname === undefined ? current.rname : soaName(given.rname, "rname", faults),
    refresh: given.refresh ?? current.refresh,
    retry: given.retry ?? current.retry,
    expire: given.expire ?? current.expire,
    minimum: given.minimum ?? current.minimum,
  };
}

/** A server or a mailbox: a full name that keeps its case. */
function soaName(text: string, part: "mname" | "rname", faults: FieldFault[]): string {
  const pointer = `/soa/${part}`;
  const mailbox = /^([^@\\]+)@([^@]+)$/.exec(text);
  if (part === "rname" && mailbox?.[1] !== undefined) {
    const spelled = `${mailbox[1].replaceAll(".", "\\.")}.${mailbox[2]}${text.endsWith(".") ? "" : "."}`;
    faults.push({ pointer, detail: `must be a name, not an address of mail: ${JSON.stringify(spelled)}` });
    return text;
  }
  const full = fullName(text);
  const host = full.kind === "fault" ? full : hostName(text, { root: true });
  if (host.kind === "name") return host.text;
  faults.push({ pointer, detail: host.detail });
  return text;
}

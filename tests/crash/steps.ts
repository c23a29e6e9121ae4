/** What a client does next: a request, what it does to the client's model, and what the audit log has to say of it. */
import type { Chance } from "../support/chance.ts";
import type { CrashRequest } from "./client.ts";
import {
  type Ids,
  type Model,
  type ModelRecord,
  type ModelValue,
  putRecord,
  type RecordKind,
  recordKey,
} from "./world.ts";

export type Step = {
  readonly request: CrashRequest;
  /** Statuses that the node may answer with, if it answers. 200: the change is made. */
  readonly status: number;
  /** "action resource" of each entry that the change leaves in the audit log, sorted. Empty where it is refused. */
  readonly entries: readonly string[];
  readonly apply: (model: Model) => void;
};

/** What a client knows when it chooses. `zone` names it and everything that it makes. */
export type Chooser = {
  readonly client: number;
  readonly chance: Chance;
  readonly model: Model;
  readonly ids: Ids;
  /** Id of the zone that all clients write to. */
  readonly sharedZone: string;
  /** Grows with every step and makes values that were never there before. */
  readonly next: () => number;
};

const ZONES_MAX = 3;
const NAMES = 24;
const KINDS: readonly RecordKind[] = ["A", "AAAA", "TXT", "MX"];
const CONTESTED = 3;
const USERS_MAX = 4;
const BULK_MAX = 12;
const USER_PASSWORD = "a password for the crash test";

function drawValue(type: RecordKind, number: number): ModelValue {
  const [high, middle, low] = [(number >> 16) & 255, (number >> 8) & 255, number & 255];
  switch (type) {
    case "A":
      return { value: `10.${high}.${middle}.${low}` };
    case "AAAA":
      return { value: `2001:db8::1:${((number % 0xffff) + 1).toString(16)}` };
    case "TXT":
      return { value: `step ${number}` };
    case "MX":
      return { value: `mail${number}.example.`, priority: number % 100 };
    case "CNAME":
      return { value: `target${number}.example.` };
  }
}

function drawRecord({ chance, next }: Chooser): ModelRecord {
  const alias = chance.below(8) === 0;
  const type = alias ? "CNAME" : chance.pick(KINDS);
  const name = `${alias ? "alias" : "host"}${chance.below(NAMES)}`;
  const count = alias ? 1 : 1 + chance.below(3);
  const values = Array.from({ length: count }, () => drawValue(type, next()));
  return { name, type, ttl: chance.below(4) === 0 ? 0 : 60 + chance.below(1000), values };
}

function ownZones({ model }: Chooser): string[] {
  return [...model.zones.keys()];
}

function drawZone(chooser: Chooser): string | undefined {
  const zones = ownZones(chooser);
  return zones.length === 0 ? undefined : chooser.chance.pick(zones);
}

function zoneId({ ids }: Chooser, zone: string): string {
  return ids.zones.get(zone) ?? "zon_unknown";
}

function drawStored(chooser: Chooser): { zone: string; record: ModelRecord; id: string } | undefined {
  const zone = drawZone(chooser);
  const records = [...(chooser.model.zones.get(zone ?? "")?.records.values() ?? [])];
  if (zone === undefined || records.length === 0) return undefined;
  const record = chooser.chance.pick(records);
  return {
    zone,
    record,
    id: chooser.ids.records.get(`${zone} ${recordKey(record.name, record.type)}`) ?? "rec_unknown",
  };
}

function createZone(chooser: Chooser): Step {
  const zone = `zone${chooser.chance.below(6)}.client${chooser.client}.test.`;
  const ttl = 300 + chooser.chance.below(1000);
  const exists = chooser.model.zones.has(zone);
  return {
    request: { method: "POST", path: "/zones", json: { name: zone, default_ttl: ttl } },
    status: exists ? 409 : 200,
    entries: exists ? [] : ["create zone"],
    apply: (model) => void (exists || model.zones.set(zone, { ttl, locked: false, records: new Map() })),
  };
}

function editZone(chooser: Chooser): Step | undefined {
  const zone = drawZone(chooser);
  if (zone === undefined) return undefined;
  const ttl = 300 + chooser.next();
  const locked = chooser.chance.below(3) === 0;
  return {
    request: {
      method: "PUT",
      path: `/zones/${zoneId(chooser, zone)}`,
      json: { default_ttl: ttl, deletion_lock: locked },
    },
    status: 200,
    entries: ["update zone"],
    apply: (model) => {
      const stored = model.zones.get(zone);
      if (stored !== undefined) model.zones.set(zone, { ...stored, ttl, locked });
    },
  };
}

function deleteZone(chooser: Chooser): Step | undefined {
  const zone = drawZone(chooser);
  if (zone === undefined) return undefined;
  const locked = chooser.model.zones.get(zone)?.locked === true;
  return {
    request: { method: "DELETE", path: `/zones/${zoneId(chooser, zone)}` },
    status: locked ? 409 : 200,
    entries: locked ? [] : ["delete zone"],
    apply: (model) => void (locked || model.zones.delete(zone)),
  };
}

function createRecord(chooser: Chooser): Step | undefined {
  const zone = drawZone(chooser);
  if (zone === undefined) return undefined;
  const record = drawRecord(chooser);
  return {
    request: { method: "POST", path: `/zones/${zoneId(chooser, zone)}/records`, json: record },
    status: 200,
    entries: ["create record"],
    apply: (model) => putRecord(model, zone, record),
  };
}

function editRecord(chooser: Chooser): Step | undefined {
  const stored = drawStored(chooser);
  if (stored === undefined) return undefined;
  const { zone, record, id } = stored;
  const changed = { ...record, values: [drawValue(record.type, chooser.next())], ttl: 60 + chooser.chance.below(1000) };
  return {
    request: { method: "PUT", path: `/records/${id}`, json: { ttl: changed.ttl, values: changed.values } },
    status: 200,
    entries: ["update record"],
    apply: (model) => putRecord(model, zone, changed),
  };
}

function renameRecord(chooser: Chooser): Step | undefined {
  const stored = drawStored(chooser);
  if (stored === undefined) return undefined;
  const { zone, record, id } = stored;
  const name = `${record.type === "CNAME" ? "alias" : "host"}${chooser.chance.below(NAMES)}`;
  const isOther = name !== record.name;
  const replaces = isOther && chooser.model.zones.get(zone)?.records.has(recordKey(name, record.type)) === true;
  return {
    request: { method: "PUT", path: `/records/${id}`, json: { name } },
    status: 200,
    entries: [...(replaces ? ["delete record"] : []), "update record"],
    apply: (model) => {
      model.zones.get(zone)?.records.delete(recordKey(record.name, record.type));
      putRecord(model, zone, { ...record, name });
    },
  };
}

function deleteRecord(chooser: Chooser): Step | undefined {
  const stored = drawStored(chooser);
  if (stored === undefined) return undefined;
  const { zone, record, id } = stored;
  return {
    request: { method: "DELETE", path: `/records/${id}` },
    status: 200,
    entries: ["delete record"],
    apply: (model) => void model.zones.get(zone)?.records.delete(recordKey(record.name, record.type)),
  };
}

function bulkDelete(chooser: Chooser): Step | undefined {
  const zone = drawZone(chooser);
  const keys = [...(chooser.model.zones.get(zone ?? "")?.records.keys() ?? [])].slice(0, BULK_MAX);
  if (zone === undefined || keys.length === 0) return undefined;
  const ids = keys.map((key) => chooser.ids.records.get(`${zone} ${key}`) ?? "rec_unknown");
  return {
    request: { method: "POST", path: `/zones/${zoneId(chooser, zone)}/records/bulk-delete`, json: { ids } },
    status: 200,
    entries: keys.map(() => "delete record"),
    apply: (model) => {
      for (const key of keys) model.zones.get(zone)?.records.delete(key);
    },
  };
}

const IMPORT_SIZES = [3, 40, 40, 300];

/** All clients write the same few records: the last one in the audit log holds. */
function contendForRecord({ client, chance, sharedZone, next }: Chooser): Step {
  const name = `contested${chance.below(CONTESTED)}`;
  const json = { name, type: "A", ttl: 60, values: [drawValue("A", ((client + 1) << 16) + next())] };
  return {
    request: { method: "POST", path: `/zones/${sharedZone}/records`, json },
    status: 200,
    entries: ["create record"],
    apply: () => undefined,
  };
}

/** Whole or nothing, whatever the format: the file has nothing to find fault with. */
function importZone(chooser: Chooser): Step {
  const { chance, model, next } = chooser;
  const name = drawZone(chooser);
  const zone =
    name === undefined || chance.below(3) === 0 ? `zone${chance.below(6)}.client${chooser.client}.test.` : name;
  const known = model.zones.get(zone);
  const records = Array.from(
    { length: chance.pick(IMPORT_SIZES) },
    (_, index): ModelRecord => ({ name: `bulk${index}`, type: "A", ttl: 300, values: [drawValue("A", next())] }),
  );
  const rows = records.map((record) => `${zone},${record.name},A,300,${record.values[0]?.value}`);
  const lines = records.map((record) => `${record.name} 300 IN A ${record.values[0]?.value}`);
  const soa = `@ 300 IN SOA ns1.${zone} hostmaster.${zone} 1 7200 900 1209600 300`;
  const text = [
    { type: "text/csv", body: `zone,name,type,ttl,value\n${rows.join("\n")}\n` },
    { type: "text/dns", body: `$ORIGIN ${zone}\n$TTL 300\n${soa}\n${lines.join("\n")}\n` },
    { type: "application/json", body: JSON.stringify({ zones: [{ name: zone, default_ttl: 300, records }] }) },
  ][chance.below(3)];
  const isNew = known === undefined;
  return {
    request: { method: "POST", path: "/zones/import", ...(text === undefined ? {} : { text }) },
    status: 200,
    entries: [...(isNew ? ["create zone"] : []), "import zone"],
    apply: (after) => {
      const ttl = text?.type === "text/csv" ? DEFAULT_TTL : 300;
      if (isNew) after.zones.set(zone, { ttl, locked: false, records: new Map() });
      for (const record of records) putRecord(after, zone, record);
    },
  };
}

/** Of a zone that nothing was said about. */
const DEFAULT_TTL = 3600;

function refusedImport(chooser: Chooser): Step {
  const zone = `refused.client${chooser.client}.test.`;
  const records = Array.from({ length: 200 }, (_, index) => ({
    name: `bulk${index}`,
    type: "A",
    values: [{ value: index < 199 ? "192.0.2.1" : "no address" }],
  }));
  const request = { method: "POST", path: "/zones/import", json: { zones: [{ name: zone, records }] } } as const;
  return { request, status: 400, entries: [], apply: () => undefined };
}

function refusedRecord(chooser: Chooser): Step | undefined {
  const zone = drawZone(chooser);
  if (zone === undefined) return undefined;
  const path = `/zones/${zoneId(chooser, zone)}/records`;
  const hosts = [...(chooser.model.zones.get(zone)?.records.values() ?? [])].filter(({ type }) => type !== "CNAME");
  const host = hosts[0];
  if (host === undefined || chooser.chance.below(2) === 0) {
    const json = { name: "bad", type: "A", values: [{ value: "192.0.2.256" }] };
    return { request: { method: "POST", path, json }, status: 400, entries: [], apply: () => undefined };
  }
  const json = { name: host.name, type: "CNAME", values: [{ value: "elsewhere.example." }] };
  return { request: { method: "POST", path, json }, status: 409, entries: [], apply: () => undefined };
}

function changeUser(chooser: Chooser): Step {
  const { chance, model, ids, client } = chooser;
  const username = `user${chance.below(USERS_MAX)}-of-${client}`;
  const role = model.users.get(username);
  const path = `/users/${ids.users.get(username) ?? "usr_unknown"}`;
  if (role === undefined) {
    const json = { username, password: USER_PASSWORD, role: "readonly" };
    const apply = (after: Model) => void after.users.set(username, "readonly");
    return { request: { method: "POST", path: "/users", json }, status: 200, entries: ["create user"], apply };
  }
  if (chance.below(2) === 0) {
    const apply = (after: Model) => void after.users.delete(username);
    return { request: { method: "DELETE", path }, status: 200, entries: ["delete user"], apply };
  }
  const next = role === "editor" ? "readonly" : "editor";
  const apply = (after: Model) => void after.users.set(username, next);
  return { request: { method: "PUT", path, json: { role: next } }, status: 200, entries: ["update user"], apply };
}

/** One document for all: only the first client writes it. */
function changeConfig(chooser: Chooser): Step | undefined {
  if (chooser.client !== 0) return undefined;
  const cap = 100 + (chooser.next() % 5_000);
  return {
    request: { method: "PUT", path: "/config/delete-guardrails", json: { bulk_delete_cap: cap } },
    status: 200,
    entries: ["update config"],
    apply: (model) => {
      model.bulkDeleteCap = cap;
    },
  };
}

/** Each as often as it stands here. */
const STEPS: readonly ((chooser: Chooser) => Step | undefined)[] = [
  createZone,
  editZone,
  deleteZone,
  ...Array<typeof createRecord>(8).fill(createRecord),
  editRecord,
  editRecord,
  editRecord,
  renameRecord,
  renameRecord,
  deleteRecord,
  bulkDelete,
  importZone,
  importZone,
  contendForRecord,
  contendForRecord,
  refusedImport,
  refusedRecord,
  changeUser,
  changeConfig,
];

export function nextStep(chooser: Chooser): Step {
  const zones = chooser.model.zones.size;
  if (zones > ZONES_MAX && chooser.chance.below(3) === 0) return deleteZone(chooser) ?? createZone(chooser);
  return chooser.chance.pick(STEPS)(chooser) ?? createZone(chooser);
}

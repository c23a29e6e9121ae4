/** What the node holds, as its API, its audit log and its DNS answers say. */
import assert from "node:assert/strict";
import type { DnsClient } from "../support/dns-client.ts";
import { decodeMessage, encodeName, encodeQuery } from "../support/dns-message.ts";
import type { CrashClient } from "./client.ts";
import { emptyModel, type Ids, type Model, type ModelRecord, type RecordKind, recordKey } from "./world.ts";

/** A zone as the API shows it, whoever owns it. */
export type HeldZone = {
  readonly id: string;
  readonly name: string;
  readonly defaultTtl: number;
  readonly locked: boolean;
  readonly serial: number;
  readonly records: readonly (ModelRecord & { readonly id: string })[];
};

export type Held = {
  readonly zones: readonly HeldZone[];
  readonly users: readonly { readonly id: string; readonly username: string; readonly role: string }[];
  readonly bulkDeleteCap: number;
};

async function read(client: CrashClient, path: string) {
  const answer = await client.ask({ method: "GET", path });
  assert.equal(answer?.status, 200, `GET ${path}: ${JSON.stringify(answer?.body)}`);
  return answer.body;
}

export async function readHeld(client: CrashClient): Promise<Held> {
  const zones: HeldZone[] = [];
  for (const zone of (await read(client, "/zones")).items) {
    const records = await readRecords(client, zone.id);
    zones.push({
      id: zone.id,
      name: zone.name,
      defaultTtl: zone.default_ttl,
      locked: zone.deletion_lock,
      serial: zone.soa.serial,
      records,
    });
  }
  const users = (await read(client, "/users")).items;
  return { zones, users, bulkDeleteCap: (await read(client, "/config/delete-guardrails")).bulk_delete_cap };
}

export async function readRecords(client: CrashClient, zoneId: string): Promise<(ModelRecord & { id: string })[]> {
  const { items } = await read(client, `/zones/${zoneId}/records`);
  return items.map(({ id, name, type, ttl, values }: ModelRecord & { readonly id: string }) => ({
    id,
    name,
    type,
    ttl,
    values: values.map(({ value, priority }) => (priority === undefined ? { value } : { value, priority })),
  }));
}

/** The part of what is held that belongs to a client, and its ids. */
export function partOf(held: Held, client: number): { readonly model: Model; readonly ids: Ids } {
  const model = emptyModel();
  const ids: Ids = { zones: new Map(), records: new Map(), users: new Map() };
  for (const { id, name, defaultTtl, locked, records } of held.zones) {
    if (!name.endsWith(`.client${client}.test.`)) continue;
    ids.zones.set(name, id);
    const own = new Map<string, ModelRecord>();
    for (const { id: recordId, ...record } of records) {
      own.set(recordKey(record.name, record.type), record);
      ids.records.set(`${name} ${recordKey(record.name, record.type)}`, recordId);
    }
    model.zones.set(name, { ttl: defaultTtl, locked, records: own });
  }
  for (const { id, username, role } of held.users) {
    if (!username.endsWith(`-of-${client}`)) continue;
    model.users.set(username, role);
    ids.users.set(username, id);
  }
  if (client === 0) model.bulkDeleteCap = held.bulkDeleteCap;
  return { model, ids };
}

const NUMBERS: Readonly<Record<RecordKind, number>> = { A: 1, CNAME: 5, MX: 15, TXT: 16, AAAA: 28 };
const SOA = 6;
const REFUSED = 5;
const QUERIES_AT_ONCE = 32;

/** Rdata in hexadecimal, made apart from the node's own code. Addresses of AAAA are those of the steps: "2001:db8::1:x". */
function rdataOf(type: RecordKind, value: string, priority = 0): string {
  switch (type) {
    case "A":
      return Buffer.from(value.split(".").map(Number)).toString("hex");
    case "AAAA":
      return `20010db8${"0".repeat(16)}0001${value.slice("2001:db8::1:".length).padStart(4, "0")}`;
    case "TXT":
      return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]).toString("hex");
    case "CNAME":
      return Buffer.from(encodeName(value)).toString("hex");
    case "MX":
      return Buffer.concat([Buffer.from([priority >> 8, priority & 255]), encodeName(value)]).toString("hex");
  }
}

async function query(dns: DnsClient, name: string, type: number) {
  const response = await dns.ask(encodeQuery({ name, type, edns: { udpSize: 4096 } }), 5_000);
  assert.ok(response, `no answer for ${name} ${type}`);
  return decodeMessage(response);
}

async function checkRecord(dns: DnsClient, zone: HeldZone, record: ModelRecord): Promise<void> {
  const owner = `${record.name}.${zone.name}`;
  const { answer, rcode } = await query(dns, owner, NUMBERS[record.type]);
  const found = answer.filter((one) => one.type === NUMBERS[record.type]);
  assert.equal(rcode, 0, owner);
  assert.deepEqual(
    found.map(({ rdata }) => rdata).sort(),
    record.values.map(({ value, priority }) => rdataOf(record.type, value, priority)).sort(),
    `${owner} ${record.type}`,
  );
  const ttl = record.ttl === 0 ? zone.defaultTtl : record.ttl;
  for (const one of found) assert.equal(one.ttl, ttl, `TTL of ${owner} ${record.type}`);
}

/** Something that a client changed: it may be there no longer. */
export type Touched = { readonly zone: string; readonly name: string; readonly type: RecordKind };

/**
 * Every record that the API shows is answered as it is, each zone with its serial, and of what was touched nothing else
 * is. Gives how many queries that took.
 */
export async function checkDns(dns: DnsClient, held: Held, touched: readonly Touched[]): Promise<number> {
  const checks: (() => Promise<void>)[] = [];
  const here = new Set<string>();
  for (const zone of held.zones) {
    here.add(zone.name);
    checks.push(async () => {
      const { answer } = await query(dns, zone.name, SOA);
      const serial = Buffer.from(answer[0]?.rdata ?? "", "hex")
        .subarray(-20)
        .readUInt32BE(0);
      assert.equal(serial, zone.serial, `serial of ${zone.name}`);
    });
    for (const record of zone.records) {
      here.add(`${zone.name} ${recordKey(record.name, record.type)}`);
      checks.push(() => checkRecord(dns, zone, record));
    }
  }
  for (const { zone, name, type } of touched) {
    if (here.has(`${zone} ${recordKey(name, type)}`)) continue;
    checks.push(async () => {
      const { answer, rcode } = await query(dns, `${name}.${zone}`, NUMBERS[type]);
      assert.deepEqual(answer, [], `${name}.${zone} ${type} is answered and is not there`);
      if (!here.has(zone)) assert.equal(rcode, REFUSED, `${zone} is answered for and is not there`);
    });
  }
  const count = checks.length;
  const runOn = async () => {
    for (let check = checks.pop(); check !== undefined; check = checks.pop()) await check();
  };
  await Promise.all(Array.from({ length: QUERIES_AT_ONCE }, runOn));
  return count;
}

export type LoggedEntry = {
  readonly request_id: string;
  readonly action: string;
  readonly resource: string;
  readonly resource_id: string;
  readonly resource_name: string;
  readonly result: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the log holds.
  readonly after?: any;
};

/** The entries of the audit log since a moment, newest first. */
export async function readLog(client: CrashClient, since: Date): Promise<readonly LoggedEntry[]> {
  return (await client.lines(`/audit/export?from=${since.toISOString()}`)) as LoggedEntry[];
}

/** "action resource" of each entry, by the request that left them. */
export function entriesByRequest(log: readonly LoggedEntry[]): ReadonlyMap<string, readonly string[]> {
  const byRequest = new Map<string, string[]>();
  for (const { request_id, action, resource } of log) {
    const entries = byRequest.get(request_id) ?? [];
    entries.push(`${action} ${resource}`);
    byRequest.set(request_id, entries);
  }
  for (const entries of byRequest.values()) entries.sort();
  return byRequest;
}

/** Each record of the zone is what the newest entry about it says. */
export function checkContested(held: Held, zoneId: string, log: readonly LoggedEntry[]): void {
  const zone = held.zones.find(({ id }) => id === zoneId);
  assert.ok(zone, "the zone of all clients is there");
  for (const { id, name, values } of zone.records) {
    const newest = log.find(({ resource_id }) => resource_id === id);
    if (newest !== undefined) assert.deepEqual(values, newest.after?.values, `${name}, which all clients write`);
  }
}

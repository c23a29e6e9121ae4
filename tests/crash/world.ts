/**
 * What one client of the crash test believes the node to hold: its own zones with their records, its own users and, for
 * the first client, one setting. No other client touches these, so that every belief is exact.
 */

export type ModelRecord = {
  readonly name: string;
  readonly type: RecordKind;
  readonly ttl: number;
  readonly values: readonly ModelValue[];
};
export type ModelValue = { readonly value: string; readonly priority?: number };
export type RecordKind = "A" | "AAAA" | "TXT" | "MX" | "CNAME";
export type ModelZone = { readonly ttl: number; readonly locked: boolean; readonly records: Map<string, ModelRecord> };

export type Model = {
  /** By name, absolute. */
  readonly zones: Map<string, ModelZone>;
  /** Role by user name. */
  readonly users: Map<string, string>;
  bulkDeleteCap: number;
};

/** Ids as the node gave them, which are no part of what a model says. */
export type Ids = {
  readonly zones: Map<string, string>;
  readonly records: Map<string, string>;
  readonly users: Map<string, string>;
};

export function recordKey(name: string, type: string): string {
  return `${name} ${type}`;
}

export function emptyModel(): Model {
  return { zones: new Map(), users: new Map(), bulkDeleteCap: 100 };
}

export function putRecord(model: Model, zone: string, record: ModelRecord): void {
  model.zones.get(zone)?.records.set(recordKey(record.name, record.type), record);
}

/** The same for any two models that say the same. */
export function modelText({ zones, users, bulkDeleteCap }: Model): string {
  const sorted = <Value>(map: ReadonlyMap<string, Value>) => [...map].sort(([one], [other]) => (one < other ? -1 : 1));
  const plain = sorted(zones).map(([name, { ttl, locked, records }]) => [name, ttl, locked, sorted(records)]);
  return JSON.stringify([plain, sorted(users), bulkDeleteCap]);
}

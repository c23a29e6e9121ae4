import type { RecordBody, ZoneBody } from "../../src/model/objects.ts";
import type { AuditInput } from "../../src/store/store.ts";

/** A zone for tests of the store; what is not given is made from its name. */
export function zoneBody(name: string, extra: Partial<ZoneBody> = {}): ZoneBody {
  const timers = { refresh: 7200, retry: 900, expire: 1_209_600, minimum: 300 };
  const soa = { mname: `ns1.${name}`, rname: `hostmaster.${name}`, ...timers };
  return { id: `zon_${name}`, name, default_ttl: 3600, soa, deletion_lock: false, ...extra };
}

/** An A record for tests of the store; its id is made from its key. */
export function recordBody(zone: string, name: string, extra: Partial<RecordBody> = {}): RecordBody {
  const type = extra.type ?? "A";
  const values = [{ value: "192.0.2.1" }];
  const id = `rec_${name}.${zone}${type}`;
  return { id, zone, name, type, ttl: 0, values, protected: false, auto_populate: false, ...extra };
}

export function auditInput(extra: Partial<AuditInput> = {}): AuditInput {
  return {
    user_id: "usr_1",
    user_name: "alice",
    source_address: "127.0.0.1",
    request_id: "req_1",
    action: "create",
    resource: "record",
    resource_id: "rec_1",
    resource_name: "a.corp.",
    result: "success",
    ...extra,
  };
}

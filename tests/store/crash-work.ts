/** What the crash test writes: a numbered sequence of changes to one zone, as transactions and as a model in a map. */
import type { StoreTransaction } from "../../src/store/store.ts";
import { auditInput, recordBody, zoneBody } from "../support/store-objects.ts";

const NAMES = 10;

/** Name of record -> its TTL, which is the number of the change that wrote it. */
export type ZoneModel = Map<string, number>;

export function zoneOf(writer: number): string {
  return `w${writer}.`;
}

type Step =
  | { readonly do: "recreate-zone" }
  | { readonly do: "delete"; readonly name: string }
  | { readonly do: "rename"; readonly from: string; readonly to: string }
  | { readonly do: "put"; readonly name: string };

function stepOf(number: number): Step {
  const name = `r${number % NAMES}`;
  if (number % 11 === 0) return { do: "recreate-zone" };
  if (number % 5 === 0) return { do: "delete", name };
  if (number % 7 === 0) return { do: "rename", from: `r${(number + 3) % NAMES}`, to: name };
  return { do: "put", name };
}

export function applyToModel(model: ZoneModel, number: number): void {
  const step = stepOf(number);
  if (step.do === "recreate-zone") model.clear();
  else if (step.do === "delete") model.delete(step.name);
  else if (step.do === "put") model.set(step.name, number);
  else if (model.has(step.from) && step.from !== step.to) {
    model.delete(step.from);
    model.set(step.to, number);
  }
}

export function applyToStore(tx: StoreTransaction, writer: number, number: number): void {
  const zone = zoneOf(writer);
  const step = stepOf(number);
  if (tx.get("zone", [zone]) === undefined) tx.put("zone", zoneBody(zone));
  if (step.do === "recreate-zone") {
    tx.deleteZone(zone);
    tx.put("zone", zoneBody(zone, { id: `zon_${writer}_${number}` }));
  } else if (step.do === "delete") tx.delete("record", [zone, step.name, "A"]);
  else if (step.do === "put") {
    const id = tx.get("record", [zone, step.name, "A"])?.body.id ?? `rec_${writer}_${number}`;
    tx.put("record", recordBody(zone, step.name, { id, ttl: number }));
  } else {
    const source = tx.get("record", [zone, step.from, "A"]);
    if (source !== undefined && step.from !== step.to) {
      tx.move("record", source.key, { ...source.body, name: step.to, ttl: number });
    }
  }
  tx.audit(auditInput({ resource: zone, resource_id: `${writer}-${number}` }));
}

/** All zones as one JSON bundle, which an import reads back without loss but for the secrets. Streamed a page at a time. */
import type { RecordBody, ZoneBody } from "../model/objects.ts";
import { maskSecrets } from "../model/secrets.ts";
import type { Store } from "../store/store.ts";
import { BUNDLE_VERSION } from "./import-bundle.ts";
import { scanSlices } from "./scan.ts";

/** Chunks of JSON text; together one bundle. Zones and records are each as they are when their page is read. */
export async function* bundleText(
  store: Pick<Store, "list" | "serialOf">,
  exportedAtMs: number,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  yield `{"version":${BUNDLE_VERSION},"exported_at":"${new Date(exportedAtMs).toISOString()}","zones":[`;
  let isFirst = true;
  for await (const zones of scanSlices(store, "zone", { signal })) {
    for (const { body } of zones) {
      yield `${isFirst ? "" : ","}\n${zoneHeadText(body, store.serialOf(body.name) ?? 0)}`;
      isFirst = false;
      yield* recordsText(store, body.name, signal);
      yield "]}";
    }
  }
  yield "\n]}\n";
}

async function* recordsText(
  store: Pick<Store, "list">,
  zone: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<string> {
  let isFirst = true;
  for await (const slice of scanSlices(store, "record", { prefix: [zone], signal })) {
    // What is shadowed by another record of its name is not in effect, and no import could take both.
    const records = slice.filter(({ shadowedBy }) => shadowedBy === undefined);
    if (records.length === 0) continue;
    yield `${isFirst ? "" : ","}\n${records.map(({ body }) => JSON.stringify(bundleRecord(body))).join(",\n")}`;
    isFirst = false;
  }
}

/** The zone's own fields, open at its records. */
function zoneHeadText({ id: _, soa, ...fields }: ZoneBody, serial: number): string {
  const { mname, rname, ...timers } = soa;
  const head = JSON.stringify({ ...fields, soa: { mname, rname, serial, ...timers } });
  return `${head.slice(0, -1)},"records":[`;
}

/** A record as a POST has it: its id and its zone belong to the store it came from. */
export function bundleRecord(record: RecordBody): Record<string, unknown> {
  const { id: _, zone: __, ...fields } = maskSecrets("record", record);
  return fields;
}

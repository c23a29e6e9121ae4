/**
 * Zones of the store as another thread reads them, each as it stands at one moment: what is read inside of one call belongs
 * to one read transaction, whatever is written meanwhile.
 */
import { join } from "node:path";
import type { ZoneBody } from "../model/objects.ts";
import { isAlive } from "./alive.ts";
import { readAnswering } from "./answering.ts";
import { openDatabaseReader, STORE_FOLDER } from "./database.ts";
import { readObject, readZoneRow } from "./objects.ts";
import type { Seal } from "./seal.ts";
import type { AnsweringRecord, Stamp } from "./store.ts";
import { stateOfZone } from "./zone-row.ts";

export type ZoneSnapshot = {
  readonly body: ZoneBody;
  readonly serial: number;
  /** Of its creation: another life of the zone has another one. */
  readonly born: Stamp;
  /** The records in effect, in the order of keys, some at a time; secrets of their health checks stay sealed. */
  readonly records: () => Iterable<readonly AnsweringRecord[]>;
};

export type SnapshotReader = {
  /** Calls `take` with the zone, or undefined where it does not answer. What `take` was given ends with it. */
  readonly read: <T>(zone: string, take: (snapshot: ZoneSnapshot | undefined) => T) => T;
  readonly close: () => Promise<void>;
};

const PAGE_RECORDS = 2_000;

/** Nobody here needs a secret. */
const SEALED: Seal = {
  check: "",
  seal: () => {
    throw new Error("a reader seals nothing");
  },
  open: (_kind, _key, body) => body,
  sealText: () => {
    throw new Error("a reader seals nothing");
  },
  openText: (_purpose, sealed) => sealed,
};

/** Opens the store in the node's data directory to read it, beside the thread that writes it. */
export function openSnapshotReader(directory: string): SnapshotReader {
  const database = openDatabaseReader(join(directory, STORE_FOLDER));
  return {
    read: (zone, take) => {
      database.renew();
      const row = readZoneRow(database, zone);
      const stored = readObject(database, "zone", [zone]);
      const isActive = stateOfZone(row) === "active";
      if (!isActive || stored === undefined || !isAlive("zone", stored, () => row)) return take(undefined);
      const { content, born } = stored.envelope;
      if (content.kind !== "body") return take(undefined);
      function* records() {
        let cursor: Uint8Array | undefined;
        do {
          const options = { limit: PAGE_RECORDS, ...(cursor !== undefined && { cursor }) };
          const page = readAnswering(database, () => row, SEALED, zone, options);
          yield page.records;
          cursor = page.cursor;
        } while (cursor !== undefined);
      }
      // The store wrote it as the body of a zone.
      return take({ body: content.body as ZoneBody, serial: row.serial?.serial ?? 0, born, records });
    },
    close: () => database.close(),
  };
}

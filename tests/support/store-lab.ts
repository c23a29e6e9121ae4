/** A store, its publisher and the image that it keeps, with questions in the words of the domain. */
import assert from "node:assert/strict";
import { newId } from "../../src/commands/run.ts";
import type { RecordBody, ZoneBody } from "../../src/model/objects.ts";
import { type RecordCreate, recordFromCreate } from "../../src/model/record.ts";
import { type ZoneCreate, zoneFromCreate } from "../../src/model/zone.ts";
import {
  openStorePublisher,
  type StorePublisher,
  type StorePublisherOptions,
} from "../../src/publish/store-publisher.ts";
import type { StoreTransaction } from "../../src/store/store.ts";
import { type TemporaryStore, temporaryStore } from "./store.ts";
import { openLab, type ZoneLab } from "./zone-lab.ts";

export type StoreLab = AsyncDisposable & {
  readonly lab: ZoneLab;
  readonly publisher: StorePublisher;
  readonly store: TemporaryStore["store"];
  /** Runs a transaction. Zones that it makes are active. */
  readonly write: (work: (edit: StoreEdit) => void) => Promise<void>;
  /** Errors in the log. There are to be none at the end. */
  readonly faults: string[];
};

export type StoreEdit = {
  readonly tx: StoreTransaction;
  readonly zone: (given: ZoneCreate, state?: "pending" | "active") => ZoneBody;
  /** `zone` is a name. */
  readonly record: (zone: string, given: RecordCreate) => RecordBody;
};

export function editOf(tx: StoreTransaction): StoreEdit {
  return {
    tx,
    zone: (given, state = "active") => {
      const body = tx.put("zone", zoneFromCreate(given, newId("zone"))).body;
      tx.setState(body.name, state);
      return body;
    },
    record: (zone, given) => tx.put("record", recordFromCreate(given, { id: "", name: zone }, newId("record"))).body,
  };
}

export type StoreLabOptions = Pick<StorePublisherOptions, "gates" | "region">;

export async function openStoreLab(options: StoreLabOptions = {}): Promise<StoreLab> {
  const temporary = await temporaryStore();
  const lab = openLab([]);
  const faults: string[] = [];
  const publisher = openStorePublisher({
    ...options,
    store: temporary.store,
    writer: lab.writer,
    log: (level, message) => {
      if (level === "error") faults.push(message);
    },
  });
  await publisher.start();
  return {
    lab,
    publisher,
    store: temporary.store,
    faults,
    write: (work) => temporary.store.write((tx) => work(editOf(tx))),
    [Symbol.asyncDispose]: async () => {
      publisher[Symbol.dispose]();
      await temporary[Symbol.asyncDispose]();
      assert.deepEqual(faults, []);
    },
  };
}

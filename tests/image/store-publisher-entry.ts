/** A control thread for the test that kills it: it writes to a store whenever it is told to, and publishes that. */
import { parentPort, workerData } from "node:worker_threads";
import { newId } from "../../src/commands/run.ts";
import type { SharedImage } from "../../src/image/shared.ts";
import { openImageWriter } from "../../src/image/writer.ts";
import { overrideFromCreate } from "../../src/model/override.ts";
import { openStorePublisher } from "../../src/publish/store-publisher.ts";
import { openStore } from "../../src/store/open-store.ts";
import { seededChance } from "../support/chance.ts";
import { editOf } from "../support/store-lab.ts";

type PublisherData = {
  readonly shared: SharedImage;
  readonly directory: string;
  readonly key: Uint8Array;
  readonly seed: number;
  readonly zones: readonly string[];
  readonly names: number;
};

const { shared, directory, key, seed, zones, names }: PublisherData = workerData;
const OVERRIDES = 700;
const chance = seededChance(seed);
const store = await openStore({ directory, nodeId: "dying", secretKey: { kind: "file", key } });
const publisher = openStorePublisher({ store, writer: openImageWriter(shared), log: () => undefined });
await publisher.start();
parentPort?.postMessage("started");
// The thread dies while it publishes, never inside a transaction: the library of the database does not survive that.
parentPort?.on("message", async () => {
  await store.write((tx) => {
    const edit = editOf(tx);
    for (const zone of zones) {
      const stored = tx.get("zone", [zone]);
      if (stored === undefined) edit.zone({ name: zone });
      // Another TTL of all records is a zone to be built; else its names change where they are.
      else if (chance.below(2) === 0) tx.put("zone", { ...stored.body, default_ttl: 1 + chance.below(1000) });
      for (let index = 0; index < names / 2; index++) {
        const name = `n${chance.below(names)}`;
        if (chance.below(3) === 0) tx.delete("record", [zone, name, "A"]);
        else edit.record(zone, { name, type: "A", values: [{ value: `192.0.2.${1 + chance.below(250)}` }] });
      }
    }
    for (let index = 0; index < OVERRIDES / 2; index++) {
      const name = `o${chance.below(OVERRIDES)}.far.`;
      const values = [{ value: `10.0.0.${1 + chance.below(250)}` }];
      if (chance.below(3) === 0) tx.delete("override", [name, "A"]);
      else tx.put("override", overrideFromCreate({ name, type: "A", values }, newId("override")));
    }
  });
  parentPort?.postMessage("publishing");
  await publisher.settled();
  parentPort?.postMessage("settled");
});

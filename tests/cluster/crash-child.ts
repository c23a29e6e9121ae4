/**
 * `crash-child.ts DIRECTORY PORT NEXT...`: a store that replicates with the one at PORT. One writer for each NEXT goes on from
 * that number, and says "WRITER NUMBER" for each change once it is acknowledged. It never ends by itself.
 */
import { writeSync } from "node:fs";
import { openStore } from "../../src/store/open-store.ts";
import { applyToStore } from "../store/crash-work.ts";
import { startReplica } from "../support/replicating-store.ts";
import { MORTAL, SECRET_KEY, SURVIVOR } from "./crash-nodes.ts";

const [directory = "", port, ...starts] = process.argv.slice(2);
const store = await openStore({ directory, nodeId: MORTAL, secretKey: SECRET_KEY });
const replica = await startReplica(store);
replica.meet(SURVIVOR, Number(port));
writeSync(1, "open\n");
await Promise.all(
  starts.map(async (start, writer) => {
    for (let number = Number(start); ; number++) {
      await store.write((tx) => applyToStore(tx, writer, number));
      writeSync(1, `${writer} ${number}\n`);
    }
  }),
);

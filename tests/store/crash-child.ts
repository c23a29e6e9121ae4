/**
 * `crash-child.ts DIRECTORY NEXT...`: one writer for each NEXT goes on from that number, and says "WRITER NUMBER" for
 * each change once it is acknowledged. It never ends by itself.
 */
import { writeSync } from "node:fs";
import { openStore } from "../../src/store/open-store.ts";
import { applyToStore } from "./crash-work.ts";

const [directory = "", ...starts] = process.argv.slice(2);
const store = await openStore({ directory, nodeId: "crash", secretKey: { kind: "file", key: new Uint8Array(32) } });
writeSync(1, "open\n");
await Promise.all(
  starts.map(async (start, writer) => {
    for (let number = Number(start); ; number++) {
      await store.write((tx) => applyToStore(tx, writer, number));
      writeSync(1, `${writer} ${number}\n`);
    }
  }),
);

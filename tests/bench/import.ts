/** How long an import of 50,000 records takes, and how long it keeps the control thread from anything else. */
import { importZones } from "../../src/commands/import-zones.ts";
import { createImportThread } from "../../src/node/import-thread.ts";
import { ALONE, testCaller } from "../support/commands.ts";
import { temporaryStore } from "../support/store.ts";

const RECORDS = 50_000;

function zoneText(zone: string, octet: number): string {
  const lines = [`$ORIGIN ${zone}`, "$TTL 300", "@ IN SOA ns1 hostmaster 1 7200 900 1209600 300"];
  for (let index = 0; index < RECORDS; index++) {
    lines.push(`host${index} IN A 10.${octet}.${index >> 8}.${index & 255}`);
  }
  return lines.join("\n");
}

async function measured<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const gaps: number[] = [];
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    gaps.push(now - last - 1);
    last = now;
  }, 1);
  const start = performance.now();
  const result = await work();
  const total = performance.now() - start;
  await new Promise((resolve) => setImmediate(resolve));
  clearInterval(timer);
  gaps.sort((left, right) => right - left);
  const longest = gaps.slice(0, 5).map((gap) => gap.toFixed(0));
  process.stdout.write(`${title}: ${total.toFixed(0)} ms; longest turns ${longest.join(", ")} ms\n`);
  return result;
}

await using temporary = await temporaryStore();
await using thread = createImportThread();
const tools = { parse: thread.parse, peers: ALONE };
const source = (octet: number) => ({ contentType: "text/dns", body: Buffer.from(zoneText("bulk.example.", octet)) });
const { context } = temporary;
const caller = testCaller();
await measured("import of 50,000 records into a new zone", () => importZones(context, caller, tools, source(1)));
await measured("the same again: nothing changes", () => importZones(context, caller, tools, source(1)));
await measured("dry run of 50,000 changed records", () =>
  importZones(context, { ...caller, dryRun: true }, tools, source(2)),
);
await measured("import of 50,000 changed records", () => importZones(context, caller, tools, source(2)));

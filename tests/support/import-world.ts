/** The API with everything that imports and exports touch, its bodies read in the real thread. */
import { readFileSync } from "node:fs";
import { exportRoutes } from "../../src/api/routes/export.ts";
import { importRoutes } from "../../src/api/routes/import.ts";
import { recordRoutes } from "../../src/api/routes/records.ts";
import { zoneRoutes } from "../../src/api/routes/zones.ts";
import { createImportThread, type ImportThreadOptions } from "../../src/node/import-thread.ts";
import { startApi, type TestApi } from "./api.ts";
import { ALONE } from "./commands.ts";

export async function importWorld(options: ImportThreadOptions = {}): Promise<TestApi> {
  const thread = createImportThread(options);
  const api = await startApi((context) => [
    ...zoneRoutes(context, ALONE),
    ...recordRoutes(context),
    ...importRoutes(context, { parse: thread.parse, peers: ALONE }),
    ...exportRoutes(context),
  ]);
  return {
    ...api,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await thread[Symbol.asyncDispose]();
    },
  };
}

export const DNS = { "content-type": "text/dns" };
export const CSV = { "content-type": "text/csv" };

/** A zone file with a SOA of absolute names. */
export function zoneText(zone: string, records = ""): string {
  return `$ORIGIN ${zone}\n$TTL 300\n@ IN SOA ns1 hostmaster 2026010100 7200 900 1209600 300\n${records}`;
}

export function vector(file: string): string {
  return readFileSync(new URL(`../vectors/${file}`, import.meta.url), "utf8");
}

/** multipart/form-data of zone files, and its content type. */
export function formOf(files: readonly (readonly [name: string, text: string])[]): {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
} {
  const boundary = "----signpost-test";
  const parts = files.map(
    ([name, text]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${text}\r\n`,
  );
  return {
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    body: `${parts.join("")}--${boundary}--\r\n`,
  };
}

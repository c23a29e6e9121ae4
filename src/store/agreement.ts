/** When this store last agreed with another one on everything, and up to when it has what each other node had. */
import type { Database } from "./database.ts";
import { readMetaText, writeMetaText } from "./meta.ts";
import type { Agreements } from "./replica.ts";

const LAST_AGREEMENT = "last-agreement";
const AGREEMENTS = "agreements";

/** Milliseconds since 1970; 0: never. */
export function lastAgreementMs(database: Database): number {
  return Number(readMetaText(database, LAST_AGREEMENT) ?? 0);
}

export function agreements(database: Database): Agreements {
  return JSON.parse(readMetaText(database, AGREEMENTS) ?? "{}");
}

export function setAgreement(database: Database, atMs: number, known: Agreements): Promise<void> {
  if (!(Number.isSafeInteger(atMs) && atMs >= 0)) throw new RangeError(`${atMs} is no time of an agreement`);
  return database.run(() => {
    writeMetaText(database, LAST_AGREEMENT, String(atMs));
    writeMetaText(database, AGREEMENTS, JSON.stringify(known));
    return true;
  });
}

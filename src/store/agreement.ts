/** When this store last agreed with another one on everything. */
import type { Database } from "./database.ts";
import { readMetaText, writeMetaText } from "./meta.ts";

const LAST_AGREEMENT = "last-agreement";

/** Milliseconds since 1970; 0: never. */
export function lastAgreementMs(database: Database): number {
  return Number(readMetaText(database, LAST_AGREEMENT) ?? 0);
}

export function setAgreement(database: Database, atMs: number): Promise<void> {
  if (!(Number.isSafeInteger(atMs) && atMs >= 0)) throw new RangeError(`${atMs} is no time of an agreement`);
  return database.run(() => {
    writeMetaText(database, LAST_AGREEMENT, String(atMs));
    return true;
  });
}

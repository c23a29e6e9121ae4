/** What a store knows of itself. */
import { type Database, TABLE } from "./database.ts";
import { textKey } from "./objects.ts";

export type Meta = {
  readonly format: number;
  /** Random, made anew with a fresh store and at a restore. */
  readonly instance: string;
  readonly secret: { readonly kind: "file" | "cluster"; readonly check: string };
};
export const FORMAT = 1;

export function readMeta(database: Database): Meta | undefined {
  const text = database.get(TABLE.META, textKey("store"));
  return text === undefined ? undefined : JSON.parse(text);
}

export function writeMeta(database: Database, meta: Meta): void {
  database.put(TABLE.META, textKey("store"), JSON.stringify(meta));
}

export function readMetaText(database: Database, name: string): string | undefined {
  return database.get(TABLE.META, textKey(name));
}

export function writeMetaText(database: Database, name: string, value: string): void {
  database.put(TABLE.META, textKey(name), value);
}

/** What a store knows of itself. */
import { randomBytes } from "node:crypto";
import { type Database, TABLE } from "./database.ts";
import { textKey } from "./objects.ts";

export type Meta = {
  readonly format: number;
  /** See instance.ts. */
  readonly instance: string;
  /** Where the store lies, by what no copy shares; absent: it was opened by a version that did not ask. */
  readonly places?: readonly string[];
  readonly secret: { readonly kind: "file" | "cluster"; readonly check: string };
};
export const FORMAT = 1;
const INSTANCE_BYTES = 10;

export function freshInstance(): string {
  return randomBytes(INSTANCE_BYTES).toString("hex");
}

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

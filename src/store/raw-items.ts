/** What one store gives another: versions with their secrets opened, registers, and ids that lost. */
import type { Kind, NaturalKey } from "../model/objects.ts";
import type { Envelope } from "./envelope.ts";
import type { Stamp } from "./store.ts";
import type { Ending } from "./zone-row.ts";

export type RawItem =
  | { readonly item: "object"; readonly kind: Kind; readonly key: NaturalKey; readonly envelope: Envelope }
  | { readonly item: "floor"; readonly zone: string; readonly floor: Stamp; readonly ending?: Ending }
  | { readonly item: "serial"; readonly zone: string; readonly life: Stamp; readonly serial: number }
  | {
      readonly item: "activation";
      readonly zone: string;
      readonly life: Stamp;
      readonly state: "pending" | "active";
    }
  | { readonly item: "alias"; readonly kind: Kind; readonly id: string; readonly key: NaturalKey };

/** `rows`: records with nothing special as they lie in a store (plain-row.ts), in the order of their keys; only for who asks. */
export type RawPage = {
  readonly items: readonly RawItem[];
  readonly rows: readonly string[];
  readonly cursor: string | undefined;
};

export type AliasItem = Extract<RawItem, { item: "alias" }>;

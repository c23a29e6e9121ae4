/** What the control thread and the thread of imports say to each other. */
import type { ImportSource } from "../commands/import-draft.ts";
import type { ImportReading, ImportSlice } from "../commands/import-parser.ts";
import type { BlocklistBody, BlocklistPartBody } from "../model/objects.ts";
import type { FieldFault, RefusalCode } from "../model/refusal.ts";

/** What the thread is asked. It answers each message with one. */
export type ImportQuestion =
  | { readonly kind: "parse"; readonly source: ImportSource }
  /** Go back to the first slice. */
  | { readonly kind: "rewind" }
  | { readonly kind: "next" }
  /** Read a blocklist. */
  | { readonly kind: "blocklist"; readonly body: Uint8Array }
  /** Parts of the blocklist that was read last, which are those of its index. */
  | { readonly kind: "blocklist-parts"; readonly keys: readonly string[] }
  /** Forget the import. */
  | { readonly kind: "drop" };

export type ImportAnswer =
  | ({ readonly kind: "parsed" } & Pick<ImportReading, "format" | "zones" | "parseErrors">)
  | { readonly kind: "slice"; readonly slice: ImportSlice | undefined }
  | { readonly kind: "blocklist"; readonly list: BlocklistBody }
  | { readonly kind: "blocklist-parts"; readonly parts: readonly BlocklistPartBody[] }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode;
      readonly detail: string;
      readonly faults: readonly FieldFault[];
      readonly members: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "done" };

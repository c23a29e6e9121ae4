/** Writes of TSIG keys. A key is addressed by its name, which stays. */
import * as limits from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import {
  type TsigKeyCreate,
  type TsigKeyUpdate,
  tsigKeyFromCreate,
  tsigKeyName,
  tsigKeyWithUpdate,
} from "../model/tsig-key.ts";
import type { Stored, StoreReader } from "../store/store.ts";
import { noteDelete, noteWrite } from "./audit-outcome.ts";
import { readConfig } from "./config-documents.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, newId, requireMatch, runCommand } from "./run.ts";
import { viewTimes } from "./view-times.ts";

export type TsigKeyContext = CommandContext & {
  /** What the configuration of this node says; absent: no. */
  readonly isTsigMd5Enabled?: boolean;
};

/** The key with that name, with or without its last dot, or `not_found`. */
export function requireTsigKey(reader: Pick<StoreReader, "get">, name: string): Stored<"tsig-key"> {
  const canonical = tsigKeyName(name);
  const stored = canonical === undefined ? undefined : reader.get("tsig-key", [canonical]);
  if (stored === undefined)
    throw new Refusal("not_found", `there is no TSIG key with the name ${JSON.stringify(name)}`);
  return stored;
}

export type CreatedTsigKey = {
  readonly stored: Stored<"tsig-key">;
  /** Base64, where the server made it: the one time that it is shown. */
  readonly secret?: string;
};

/** Creates a key as one command; a name that is taken is a conflict. */
export function createTsigKey(context: TsigKeyContext, caller: Caller, given: TsigKeyCreate): Promise<CreatedTsigKey> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write TSIG keys");
    const { key, isSecretMade } = tsigKeyFromCreate(given, newId("tsig-key"), context.isTsigMd5Enabled ?? false);
    const incumbent = tx.get("tsig-key", [key.name])?.body;
    if (incumbent !== undefined) {
      throw new Refusal(
        "conflict",
        `there is a TSIG key with the name ${key.name} already`,
        [{ pointer: "/name", detail: "is taken" }],
        { tsig_key_id: incumbent.id },
      );
    }
    if (tx.count("tsig-key") >= limits.TSIG_KEYS_MAX) {
      throw new Refusal("conflict", `there are ${limits.TSIG_KEYS_MAX} TSIG keys, and there may not be more`);
    }
    const stored = tx.put("tsig-key", key);
    noteWrite(tx, "create", { stored, before: undefined }, key.name);
    return isSecretMade ? { stored, secret: key.secret } : { stored };
  });
}

/** Changes the fields given, as one command. */
export function updateTsigKey(
  context: TsigKeyContext,
  caller: Caller,
  name: string,
  given: TsigKeyUpdate,
): Promise<Stored<"tsig-key">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write TSIG keys");
    const before = requireTsigKey(tx, name);
    const body = tsigKeyWithUpdate(before.body, given, viewTimes(before), context.isTsigMd5Enabled ?? false);
    requireMatch(caller, before);
    const stored = tx.put("tsig-key", body);
    noteWrite(tx, "update", { stored, before }, body.name);
    return stored;
  });
}

/** Deletes a key as one command. Returns its id. One that signs NOTIFY is a conflict: they would go out no more. */
export function deleteTsigKey(context: CommandContext, caller: Caller, name: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write TSIG keys");
    const stored = requireTsigKey(tx, name);
    const signsWith = readConfig(tx, "axfr").configured.notify_tsig_key_name;
    if (signsWith !== null && tsigKeyName(signsWith) === stored.body.name) {
      throw new Refusal("conflict", "the key signs NOTIFY: take it out of /config/axfr first");
    }
    requireMatch(caller, stored);
    tx.delete("tsig-key", stored.key);
    noteDelete(tx, stored, stored.body.name);
    return stored.body.id;
  });
}

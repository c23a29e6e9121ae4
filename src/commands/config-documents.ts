/** Reads and writes of the documents of settings that hold for the whole cluster. */
import {
  type ConfigReading,
  type ConfigZeros,
  configReading,
  configView,
  configWithUpdate,
} from "../model/config-documents.ts";
import type { ConfigName, ConfigSettings } from "../model/config-schemas.ts";
import type { ConfigBody } from "../model/objects.ts";
import { type FieldFault, Refusal, refuseFaults } from "../model/refusal.ts";
import type { Store, StoreReader } from "../store/store.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, etagOf, requireCurrent, runCommand } from "./run.ts";

/** What is configured and what applies. */
export function readConfig<Name extends ConfigName>(
  reader: Pick<StoreReader, "get">,
  name: Name,
  zeros?: ConfigZeros<Name>,
): ConfigReading<Name> {
  return configReading(name, reader.get("config", [name])?.body.settings ?? {}, zeros);
}

/** `readConfig` without a look into the store at every call: for what asks at every request. It ends with the store. */
export function followConfig<Name extends ConfigName>(
  store: Pick<Store, "get" | "onChange">,
  name: Name,
): () => ConfigReading<Name> {
  let reading = readConfig(store, name);
  store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "config" && key[0] === name)) reading = readConfig(store, name);
  });
  return () => reading;
}

export type ConfigOutcome = {
  readonly view: Readonly<Record<string, unknown>>;
  /** Absent while nothing is configured. */
  readonly etag?: string;
};

/** The document as GET shows it. */
export function viewConfig<Name extends ConfigName>(
  reader: Pick<StoreReader, "get">,
  name: Name,
  { zeros, applied }: Pick<ConfigOfNode<Name>, "zeros" | "applied"> = {},
): ConfigOutcome {
  const stored = reader.get("config", [name]);
  const view = configView(name, readConfig(reader, name, zeros), applied);
  return stored === undefined ? { view } : { view, etag: etagOf(stored) };
}

/** What of a document is a matter of the node that is asked. */
export type ConfigOfNode<Name extends ConfigName> = {
  /** What of the outcome this node in particular cannot take. */
  readonly faultsOf?: (settings: ConfigSettings<Name>) => readonly FieldFault[];
  readonly zeros?: ConfigZeros<Name> | undefined;
  /** What it runs by, of a document that it reads at its start. */
  readonly applied?: ConfigSettings<Name> | undefined;
};

/** Changes the fields given, as one command. */
export function putConfig<Name extends ConfigName>(
  context: CommandContext,
  caller: Caller,
  name: Name,
  given: Readonly<Record<string, unknown>>,
  { faultsOf = () => [], zeros, applied }: ConfigOfNode<Name> = {},
): Promise<ConfigOutcome> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write settings");
    const before = tx.get("config", [name]);
    const settings = configWithUpdate(name, before?.body.settings ?? {}, given, zeros, applied);
    refuseFaults(faultsOf(configReading(name, settings, zeros).effective));
    requireKey(tx, name, settings);
    requireCurrent(caller, before);
    const body: ConfigBody = { name, settings };
    const isSame = before === undefined && Object.keys(settings).length === 0;
    const stored = isSame ? undefined : tx.put("config", body);
    const isChanged = stored !== undefined && stored.stamp !== before?.stamp;
    tx.note({
      action: "update",
      resource: "config",
      resource_id: name,
      resource_name: name,
      ...(isChanged ? { before: before?.body ?? { name, settings: {} }, after: body } : { result: "unchanged" }),
    });
    return viewConfig(tx, name, { zeros, applied });
  });
}

/** NOTIFY signed with a key that is not there would never be sent. */
function requireKey(tx: StoreReader, name: ConfigName, settings: Readonly<Record<string, unknown>>): void {
  const key = settings.notify_tsig_key_name;
  if (name !== "axfr" || typeof key !== "string" || tx.get("tsig-key", [key.toLowerCase()]) !== undefined) return;
  const detail = "there is no TSIG key with this name";
  throw new Refusal("invalid_request", `/notify_tsig_key_name: ${detail}`, [
    { pointer: "/notify_tsig_key_name", detail },
  ]);
}

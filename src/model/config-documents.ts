/** Documents of settings: what is configured, what applies, and what a PUT makes of them. */
import { isDeepStrictEqual } from "node:util";
import Type, { type TObject, type TProperties } from "typebox";
import { configFaults } from "./config-rules.ts";
import { CONFIG_SCHEMAS, CONFIG_UNSET, CONFIG_ZEROS, type ConfigName, type ConfigSettings } from "./config-schemas.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import { maskSecrets, restoreSecrets, unrestoredFaults } from "./secrets.ts";
import { checkShape } from "./shape.ts";

export type ConfigReading<Name extends ConfigName> = {
  /** Every field as somebody configured it, else as CONFIG_UNSET has it. */
  readonly configured: ConfigSettings<Name>;
  /** What applies. */
  readonly effective: ConfigSettings<Name>;
};

/** Documents that a node reads when it starts: what applies is another matter than what is configured. */
const READ_AT_START: ReadonlySet<ConfigName> = new Set(["replication"]);

/** The body of a PUT: any of the fields, null to leave one to its default, and what applies as GET gave it. */
export function configUpdateSchema(name: ConfigName): TObject {
  const fields = Object.entries(CONFIG_SCHEMAS[name].properties).map(([field, schema]) => [
    field,
    Type.Optional(Type.Union([schema, Type.Null()])),
  ]);
  const readOnly = Object.keys(appliesShape(name)).map((field) => [field, Type.Optional(Type.Unknown())]);
  return Type.Object(Object.fromEntries([...fields, ...readOnly]), { additionalProperties: false });
}

/** The body of a GET. */
export function configViewSchema(name: ConfigName): TObject {
  return Type.Object({ ...CONFIG_SCHEMAS[name].properties, ...appliesShape(name) });
}

function appliesShape(name: ConfigName): TProperties {
  const schema = CONFIG_SCHEMAS[name];
  return { effective: schema, ...(READ_AT_START.has(name) && { effective_after_restart: schema }) };
}

/** What 0 stands for: of most documents the same on every node, of `replication` what the node's own configuration says. */
export type ConfigZeros<Name extends ConfigName> = Partial<ConfigSettings<Name>>;

/**
 * What the stored settings say. A field that this version does not know or take, because another version wrote it, is
 * passed over: a peer must not be able to stop a node by it.
 */
export function configReading<Name extends ConfigName>(
  name: Name,
  stored: Readonly<Record<string, unknown>>,
  zeros: ConfigZeros<Name> = CONFIG_ZEROS[name] ?? {},
): ConfigReading<Name> {
  const configured: Record<string, unknown> = { ...CONFIG_UNSET[name] };
  for (const [field, schema] of Object.entries(CONFIG_SCHEMAS[name].properties)) {
    const value = stored[field];
    if (value !== undefined && checkShape(schema, value).length === 0) configured[field] = value;
  }
  const effective = { ...configured };
  for (const [field, value] of Object.entries(zeros)) {
    if (effective[field] === 0) effective[field] = value;
  }
  return { configured: settingsOf(name, configured), effective: settingsOf(name, effective) };
}

/** Gives fields that were checked one by one the type of their document. */
function settingsOf<Name extends ConfigName>(
  name: Name,
  fields: Readonly<Record<string, unknown>>,
): ConfigSettings<Name> {
  if (!isSettings(name, fields)) throw new Error(`the defaults of ${name} have not the shape of its schema`);
  return fields;
}

function isSettings<Name extends ConfigName>(name: Name, fields: unknown): fields is ConfigSettings<Name> {
  return checkShape(CONFIG_SCHEMAS[name], fields).length === 0;
}

/** GET's body, secrets masked. `applied`: what this node has read at its start, of a document that it reads then. */
export function configView<Name extends ConfigName>(
  name: Name,
  { configured, effective }: ConfigReading<Name>,
  applied?: ConfigSettings<Name>,
): Readonly<Record<string, unknown>> {
  return {
    ...maskSettings(name, configured),
    effective: maskSettings(name, applied ?? effective),
    ...(applied && { effective_after_restart: maskSettings(name, effective) }),
  };
}

function maskSettings(name: ConfigName, settings: object): Readonly<Record<string, unknown>> {
  return { ...maskSecrets("config", { name, settings }).settings };
}

/**
 * The settings to store after a PUT: the fields given replace those stored, null and what is the default anyway are left
 * out. Throws `invalid_request`.
 */
export function configWithUpdate<Name extends ConfigName>(
  name: Name,
  stored: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
  zeros?: ConfigZeros<Name>,
  applied?: ConfigSettings<Name>,
): Readonly<Record<string, unknown>> {
  const { effective, effective_after_restart: afterRestart, ...fields } = given;
  const shown = configView(name, configReading(name, stored, zeros), applied);
  refuseFaults([
    ...readOnlyFaults("/effective", shown.effective, effective),
    ...readOnlyFaults("/effective_after_restart", shown.effective_after_restart, afterRestart),
  ]);
  // A secret that is not given stays as one that is given as "***", and is bound to where it goes like that.
  const asked = { ...maskSecrets("config", { settings: stored }).settings, ...fields };
  const restored = restoreSecrets("config", { settings: asked }, { settings: stored });
  refuseFaults(
    unrestoredFaults(restored).map(({ pointer, detail }) => ({ pointer: pointer.replace(/^\/settings/, ""), detail })),
  );
  const unset: Readonly<Record<string, unknown>> = CONFIG_UNSET[name];
  const next = Object.fromEntries(
    Object.entries(restored.body.settings).filter(
      ([field, value]) => value !== null && value !== undefined && !isDeepStrictEqual(value, unset[field]),
    ),
  );
  refuseFaults(configFaults(name, configReading(name, next, zeros).effective));
  return next;
}

/** Who sends back what GET gave means no change by it. */
function readOnlyFaults(pointer: string, shown: unknown, given: unknown): readonly FieldFault[] {
  if (given === undefined || isDeepStrictEqual(given, shown)) return [];
  return [{ pointer, detail: "is read-only and differs from what applies" }];
}

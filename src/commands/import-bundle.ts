/** The JSON bundle: zones with their records, each as a POST has it. Whole or not at all: the first fault ends it. */
import { type Static, Type } from "typebox";
import { parseJson } from "../base/json.ts";
import { IMPORT_RECORDS_MAX, IMPORT_ZONE_RECORDS_MAX, IMPORT_ZONES_MAX, SERIAL_MAX } from "../model/limits.ts";
import type { ZoneBody } from "../model/objects.ts";
import { ownershipConflict } from "../model/ownership.ts";
import { RecordCreate, recordFromImport } from "../model/record.ts";
import { type FieldFault, Refusal } from "../model/refusal.ts";
import { checkShape } from "../model/shape.ts";
import { ZoneCreate, zoneFromCreate } from "../model/zone.ts";
import { type RecordDraft, sortByName, type ZoneDraft } from "./import-draft.ts";
import { overLimitText } from "./import-limit.ts";

const { soa: SoaShape, ...ZONE_FIELDS } = ZoneCreate.properties;

/** A zone of a bundle: what a POST of the zone has, its serial and its records. */
export const BundleZone = Type.Object(
  {
    ...ZONE_FIELDS,
    soa: Type.Optional(
      Type.Object(
        { ...SoaShape.properties, serial: Type.Optional(Type.Integer({ minimum: 0, maximum: SERIAL_MAX })) },
        { additionalProperties: false },
      ),
    ),
    records: Type.Optional(Type.Array(RecordCreate)),
  },
  { additionalProperties: false },
);
export type BundleZone = Static<typeof BundleZone>;

export const BUNDLE_VERSION = 1;

export const Bundle = Type.Object(
  {
    version: Type.Optional(Type.Literal(BUNDLE_VERSION)),
    exported_at: Type.Optional(Type.String({ format: "date-time" })),
    zones: Type.Array(BundleZone),
  },
  {
    additionalProperties: false,
    examples: [
      {
        version: BUNDLE_VERSION,
        zones: [
          {
            name: "corp.example.",
            default_ttl: 3600,
            records: [{ name: "www", type: "A", ttl: 300, values: [{ value: "10.0.0.1" }] }],
          },
        ],
      },
    ],
  },
);

/** The shape of everything but the records, which are checked one by one: a fault then names its zone and record. */
const ZoneShape = Type.Object(
  { ...BundleZone.properties, records: Type.Optional(Type.Array(Type.Unknown())) },
  { additionalProperties: false },
);
const BundleShape = Type.Object(
  { ...Bundle.properties, zones: Type.Array(Type.Unknown(), { maxItems: IMPORT_ZONES_MAX }) },
  { additionalProperties: false },
);
/** For an import into one zone, whose name is known. */
const RecordsShape = Type.Object({ records: Type.Array(Type.Unknown()) }, { additionalProperties: false });

export type BundleOptions = {
  /** The one zone that the bundle may hold; `{"records": [...]}` is then enough, and records over the limit are cut off. */
  readonly target?: string;
};

type Reading = { readonly target: string | undefined; records: number };

/** The zones of a bundle in UTF-8. Throws `invalid_request`; what it says names the zone and the record. */
export function readBundle(bytes: Uint8Array, { target }: BundleOptions = {}): readonly ZoneDraft[] {
  const parsed = parseJson(bytes);
  if ("fault" in parsed) throw refused("", "the body", [{ pointer: "", detail: parsed.fault }]);
  const reading: Reading = { target, records: 0 };
  if (target !== undefined && isRecordsOnly(parsed.value)) {
    requireShape(RecordsShape, parsed.value, "", "the body");
    return [draftZone(reading, { ...parsed.value, name: target }, "", new Set())];
  }
  requireShape(BundleShape, parsed.value, "", "the body");
  // The shape has been checked.
  const { zones } = parsed.value as { readonly zones: readonly unknown[] };
  const names = new Set<string>();
  return zones.map((zone, index) => draftZone(reading, zone, `/zones/${index}`, names));
}

function isRecordsOnly(value: unknown): value is { readonly records: unknown } {
  return (
    typeof value === "object" && value !== null && Object.hasOwn(value, "records") && !Object.hasOwn(value, "zones")
  );
}

function draftZone(reading: Reading, given: unknown, pointer: string, names: Set<string>): ZoneDraft {
  const title = titleOfZone(given, pointer);
  requireShape(ZoneShape, given, pointer, title);
  const {
    records = [],
    soa,
    ...fields
  } = given as Omit<BundleZone, "records"> & { readonly records?: readonly unknown[] };
  const { serial, ...soaFields } = soa ?? {};
  const create: ZoneCreate = { ...fields, ...(soa === undefined ? {} : { soa: soaFields }) };
  const zone = attempt(pointer, title, () => zoneFromCreate(create, ""));
  requireTarget(reading, zone, pointer);
  if (names.has(zone.name)) throw refused(pointer, title, [{ pointer: "/name", detail: "is there twice" }]);
  names.add(zone.name);
  const isCut = reading.target !== undefined && records.length > IMPORT_ZONE_RECORDS_MAX;
  if (!isCut && records.length > IMPORT_ZONE_RECORDS_MAX) {
    throw refused(pointer, title, [{ pointer: "/records", detail: overLimitText(zone.name) }]);
  }
  const taken = isCut ? records.slice(0, IMPORT_ZONE_RECORDS_MAX) : records;
  reading.records += taken.length;
  if (reading.records > IMPORT_RECORDS_MAX) {
    throw refused("/zones", "the body", [{ pointer: "", detail: `more than ${IMPORT_RECORDS_MAX} records in all` }]);
  }
  const drafts = taken.map((record, index) => draftRecord(record, zone, `${pointer}/records/${index}`, index));
  refuseClashes(drafts, zone, pointer);
  return {
    create,
    ...(serial === undefined ? {} : { serial }),
    file: "",
    records: sortByName(drafts),
    parseErrors: [],
    errors: isCut ? [overLimitText(zone.name)] : [],
    warnings: [],
  };
}

function requireTarget({ target }: Reading, zone: ZoneBody, pointer: string): void {
  if (target === undefined || target === zone.name) return;
  throw refused(pointer, `zone ${zone.name}`, [{ pointer: "/name", detail: `the import is into the zone ${target}` }]);
}

function draftRecord(given: unknown, zone: ZoneBody, pointer: string, index: number): RecordDraft {
  const title = titleOfRecord(given, zone, index);
  requireShape(RecordCreate, given, pointer, title);
  // The shape has been checked.
  const create = given as RecordCreate;
  const { body, secretsMissing } = attempt(pointer, title, () => recordFromImport(create, zone, "", undefined));
  return secretsMissing.length === 0 ? { body } : { body, masked: create };
}

/** Two records of one name and type, and what cannot stand at one name. */
function refuseClashes(drafts: readonly RecordDraft[], zone: ZoneBody, pointer: string): void {
  const atName = Map.groupBy(drafts.entries(), ([, { body }]) => body.name);
  for (const entries of atName.values()) {
    for (const [place, [index, { body }]] of entries.entries()) {
      const title = `zone ${zone.name}, record ${index} (${body.name} ${body.type})`;
      const at = `${pointer}/records/${index}`;
      const others = entries.slice(0, place).map(([, other]) => other.body.type);
      if (others.includes(body.type))
        throw refused(at, title, [{ pointer: "/name", detail: "this name and type is there twice" }]);
      const rival = ownershipConflict(body.type, others, body.name);
      if (rival !== undefined) {
        throw refused(at, title, [
          { pointer: "/name", detail: `stands beside a record of type ${rival} of the same name` },
        ]);
      }
    }
  }
}

function requireShape(schema: Parameters<typeof checkShape>[0], value: unknown, pointer: string, title: string): void {
  const faults = checkShape(schema, value);
  if (faults.length > 0) throw refused(pointer, title, faults);
}

function attempt<Result>(pointer: string, title: string, make: () => Result): Result {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refused(pointer, title, error.faults.length > 0 ? error.faults : [{ pointer: "", detail: error.message }]);
  }
}

function refused(pointer: string, title: string, faults: readonly FieldFault[]): Refusal {
  const placed = faults.map((fault) => ({ pointer: pointer + fault.pointer, detail: fault.detail }));
  const first = faults[0];
  const field = first === undefined || first.pointer === "" ? "" : ` ${first.pointer}`;
  return new Refusal("invalid_request", `${title}:${field} ${first?.detail ?? "is not valid"}`, placed);
}

const TITLE_MAX = 200;

function titleOfZone(given: unknown, pointer: string): string {
  const name = textOf(given, "name");
  return name === undefined ? `zone at ${pointer || "/"}` : `zone ${name}`;
}

function titleOfRecord(given: unknown, zone: ZoneBody, index: number): string {
  const words = [textOf(given, "name"), textOf(given, "type")].filter((word) => word !== undefined);
  return `zone ${zone.name}, record ${index}${words.length === 0 ? "" : ` (${words.join(" ")})`}`;
}

function textOf(given: unknown, member: "name" | "type"): string | undefined {
  const value: unknown = typeof given === "object" && given !== null ? Reflect.get(given, member) : undefined;
  return typeof value === "string" ? value.slice(0, TITLE_MAX).toWellFormed() : undefined;
}

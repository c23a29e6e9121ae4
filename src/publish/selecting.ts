/**
 * What selection asks of publishing, for one incarnation after another: each gated value its slot, each value its region, and
 * which names have to be made anew where the subnet mappings change. Records of zones and overrides come here alike.
 */

import { type Gates, NO_GATES } from "../model/gates.ts";
import { type HealthCheckTemplate, type LbPolicy, RECORD_TYPES, type RecordType } from "../model/objects.ts";
import type { ValueFields } from "../model/record-values.ts";
import { asksMappings, type RegionMap } from "./region-map.ts";
import { isSelected, type SelectionTable, selectionTable, usesRegions } from "./selection-table.ts";

/** Types of one name, a bit each: large transactions touch many names. */
export type TypeSet = number;

export function typeBit(type: RecordType): TypeSet {
  return 1 << RECORD_TYPES.indexOf(type);
}

export const ALL_TYPES: TypeSet = (1 << RECORD_TYPES.length) - 1;

export type Names = Map<string, TypeSet>;

export type Selecting = { readonly gates: Gates; readonly regions: Pick<RegionMap, "placeOf"> };

/** For records that nobody probes, where no mapping says where they are. */
export const SELECTS_NOTHING: Selecting = {
  gates: NO_GATES,
  regions: { placeOf: () => ({ number: 0, name: undefined }) },
};

/** What an incarnation has that others have to know of, by name. */
export type SelectedNames = {
  /** Gated by health. */
  readonly gated: Names;
  /** With values whose region is looked up in the mappings. */
  readonly mapped: Names;
};

export function createSelectedNames(): SelectedNames {
  return { gated: new Map(), mapped: new Map() };
}

export type SelectableRecord = ValueFields & {
  readonly id: string;
  readonly name: string;
  readonly type: RecordType;
  readonly health_check_template?: HealthCheckTemplate;
};

/**
 * The table of a record that is about to be in the image, whose values are gated from now on where it has a template; undefined
 * where it is static. `zone` is empty for an override. What was gated there before is not ended here.
 */
export function prepareSelection(
  { gates, regions }: Selecting,
  names: SelectedNames,
  zone: string,
  record: SelectableRecord,
  policy: LbPolicy | undefined,
): SelectionTable | undefined {
  const { id, name, type, values, health_check_template: template } = record;
  if (!isSelected(values.length, policy, template !== undefined)) return undefined;
  const asksRegions = usesRegions(policy) || template !== undefined;
  const places = asksRegions ? values.map((value) => regions.placeOf(type, value)) : [];
  if (asksRegions && asksMappings(type, values)) addType(names.mapped, name, typeBit(type));
  if (template === undefined)
    return selectionTable({ record, policy, slots: undefined, regions: places.map(numberOf) });
  addType(names.gated, name, typeBit(type));
  const slots = gates.gate({
    zone,
    name,
    type,
    id,
    template,
    values: values.map(({ value, port = record.port }, index) => {
      const region = places[index]?.name;
      return { value, ...(port === undefined ? {} : { port }), ...(region === undefined ? {} : { region }) };
    }),
    method: policy?.method,
  });
  return selectionTable({ record, policy, slots, regions: places.map(numberOf) });
}

function numberOf({ number }: { readonly number: number }): number {
  return number;
}

/**
 * The name has no selected RRset of these types any more, or they are about to be made anew; those of `gated` stay gated until
 * then. Of an incarnation that is `inTheMaking` it is not known what was gated of the one that answers: all are ended.
 */
export function forgetSelection(
  { gates }: Selecting,
  names: SelectedNames,
  zone: string,
  name: string,
  types: TypeSet,
  gated: TypeSet,
  inTheMaking: boolean,
): void {
  removeTypes(names.mapped, name, types);
  const ended = types & ~gated & (inTheMaking ? ALL_TYPES : (names.gated.get(name) ?? 0));
  removeTypes(names.gated, name, ended);
  for (const type of RECORD_TYPES) if ((ended & typeBit(type)) !== 0) gates.ungate(zone, name, type);
}

function addType(names: Names, name: string, type: TypeSet): void {
  names.set(name, (names.get(name) ?? 0) | type);
}

function removeTypes(names: Names, name: string, types: TypeSet): void {
  const left = (names.get(name) ?? 0) & ~types;
  if (left === 0) names.delete(name);
  else names.set(name, left);
}

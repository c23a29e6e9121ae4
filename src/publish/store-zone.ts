/**
 * One zone of the store in the image: every RRset of it is made here, from the records that are in effect. What a name
 * holds is always read from the store anew, so that doing it twice, late or in another order comes to the same.
 */
import { errorText } from "../base/errors.ts";
import { RRTYPE } from "../dns/codes.ts";
import { NAME_ROOM_BYTES, nameFromText, nameToText, putName } from "../dns/name.ts";
import { createNameKey, type NameKey, readNameKey } from "../image/name-key.ts";
import { CONTROL } from "../image/shared.ts";
import {
  activateZone,
  createZone,
  deleteZone,
  isKept,
  keepName,
  nodeOf,
  typesAt,
  type ZoneHandle,
} from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { policyOf } from "../model/lb-policy.ts";
import { RECORD_TYPES, type RecordType, type RecordValue, type ZoneBody } from "../model/objects.ts";
import { ownsName } from "../model/ownership.ts";
import { typeNumber, valueRdata } from "../model/record-values.ts";
import { soaRdata } from "../model/soa.ts";
import type { AnsweringRecord, Stamp, Stored, StoreReader } from "../store/store.ts";
import { createRRsetBuffer, type RRsetBuffer } from "./rrset-wire.ts";
import {
  createSelectedNames,
  forgetSelection,
  prepareSelection,
  SELECTS_NOTHING,
  type SelectedNames,
  type Selecting,
  type TypeSet,
  typeBit,
} from "./selecting.ts";
import type { SelectionTable } from "./selection-table.ts";
import { changeRRset, type ZonePublisher } from "./zone-publisher.ts";

/** What all zones of a publisher share: the writer and room to work in. */
export type ZoneTools = {
  readonly writer: ImageWriter;
  readonly selecting: Selecting;
  readonly apex: NameKey;
  readonly owner: NameKey;
  readonly buffer: RRsetBuffer;
  /** An owner's wire form, and behind it what former ones left. */
  readonly ownerWire: Uint8Array;
  /** Hears of records that the image does not hold as they are stored. The rules of the model leave none. */
  readonly onFault: (zone: string, name: string, detail: string) => void;
};

export function createZoneTools(
  writer: ImageWriter,
  onFault: ZoneTools["onFault"],
  selecting: Selecting = SELECTS_NOTHING,
): ZoneTools {
  const [apex, owner, buffer] = [createNameKey(), createNameKey(), createRRsetBuffer()];
  return { writer, selecting, apex, owner, buffer, ownerWire: new Uint8Array(NAME_ROOM_BYTES), onFault };
}

/** One incarnation of a zone, answering or in the making. */
export type ZoneImage = {
  readonly name: string;
  readonly wire: Uint8Array;
  readonly handle: ZoneHandle;
  /** Of the zone in the store: another life of it is another zone. */
  readonly born: Stamp;
  readonly selected: SelectedNames;
  /** What records were made of that leave it to their zone. */
  readonly defaults: Pick<ZoneBody, "default_ttl" | "lb_policy">;
  /** What the SOA was made of. */
  body: ZoneBody;
  serial: number;
};

/** How many records of one name are read: there are fewer types. */
const NAME_RECORDS_MAX = 100;

/** Begins an incarnation of the zone with its SOA. It answers nothing before `showZone`. */
export function buildZone(tools: ZoneTools, stored: Stored<"zone">, serial: number): ZoneImage {
  const { body, born } = stored;
  const wire = wireName(body.name);
  readKey(tools, tools.apex, wire);
  const handle = createZone(tools.writer, tools.apex);
  const selected = createSelectedNames();
  const image: ZoneImage = { name: body.name, wire, handle, born, selected, defaults: body, body, serial };
  putSoa(publisherOf(tools, image), body, serial, false);
  return image;
}

/** Lets the incarnation answer, in place of the one before: one store. */
export function showZone(tools: ZoneTools, image: ZoneImage): void {
  readKey(tools, tools.apex, image.wire);
  activateZone(tools.writer, image.handle, tools.apex);
}

/** Ends a zone by its name in wire form. */
export function hideZone(tools: ZoneTools, wire: Uint8Array): void {
  readKey(tools, tools.apex, wire);
  deleteZone(tools.writer, tools.apex);
}

/** Adds a record to an incarnation in the making, to which nothing of its type at its name was added before. */
export function addStored(tools: ZoneTools, publisher: ZonePublisher, image: ZoneImage, record: AnsweringRecord): void {
  const { ownerWire } = tools;
  const owner = record.name === "@" ? image.wire : ownerWire;
  if (owner === ownerWire && putName(record.name, image.wire, ownerWire) < 0) {
    tools.onFault(image.name, record.name, NO_NAME);
    return;
  }
  if (record.fault !== undefined) tools.onFault(image.name, record.name, record.fault);
  if (record.values.length > 0) putRecord(tools, publisher, image, owner, record);
  else if (record.name !== "@") {
    readKey(tools, tools.owner, owner);
    keepName(tools.writer, image.handle, tools.owner, true);
  }
}

/**
 * Brings one name to what the store holds. `changed` are the types whose records changed; other types are touched only
 * where they have come or gone, because a rival hides them or does so no longer.
 */
export function publishName(
  tools: ZoneTools,
  publisher: ZonePublisher,
  image: ZoneImage,
  store: Pick<StoreReader, "list">,
  name: string,
  changed: TypeSet,
): void {
  const { writer } = tools;
  const zone = image.handle;
  const stored = store.list("record", { prefix: [image.name, name], limit: NAME_RECORDS_MAX });
  const shown = stored.filter(({ shadowedBy }) => shadowedBy === undefined).map(({ body }) => body);
  const records = shown.filter(({ values }) => values.length > 0);
  const wanted = new Set(records.map(({ type }) => typeNumber(type)));
  const owner = ownerOf(tools, image, name);
  if (owner === undefined) return;
  readKey(tools, tools.owner, owner);
  const node = nodeOf(writer, zone, tools.owner);
  const present = new Set(typesAt(writer, node));
  const wasHeld = isKept(writer, node);
  const gone = [...present].filter((type) => !wanted.has(type) && !isMadeHere(name, type));
  const stays = name !== "@" && shown.length > records.length;
  // A type that goes before another comes must not take the name with it; one without values keeps it for good.
  const isHeld = name !== "@" && (stays || (gone.length > 0 && records.length > 0));
  if (isHeld) keepName(writer, zone, tools.owner, true);
  const goneTypes = RECORD_TYPES.filter((type) => gone.includes(typeNumber(type)));
  forgetSelection(
    tools.selecting,
    image.selected,
    image.name,
    name,
    changed | typeSet(goneTypes),
    typeSet(records.filter(({ health_check_template }) => health_check_template !== undefined).map(typeOf)),
    !zone.active,
  );
  for (const type of gone) change(tools, publisher, image, owner, type, 0, []);
  if (name === "@" && (changed & typeBit("NS")) !== 0 && !wanted.has(RRTYPE.NS)) {
    change(tools, publisher, image, owner, RRTYPE.NS, 0, []);
  }
  for (const record of records) {
    if ((changed & typeBit(record.type)) !== 0 || !present.has(typeNumber(record.type))) {
      putRecord(tools, publisher, image, owner, record);
    }
  }
  readKey(tools, tools.owner, owner);
  if (!stays && (isHeld || wasHeld)) keepName(writer, zone, tools.owner, false);
}

function typeOf({ type }: { readonly type: RecordType }): RecordType {
  return type;
}

function typeSet(types: readonly RecordType[]): TypeSet {
  return types.reduce((set, type) => set | typeBit(type), 0);
}

/** The SOA, and the NS that stands in where an apex has none. */
function isMadeHere(name: string, type: number): boolean {
  return name === "@" && (type === RRTYPE.SOA || type === RRTYPE.NS);
}

function putRecord(
  tools: ZoneTools,
  publisher: ZonePublisher,
  image: ZoneImage,
  owner: Uint8Array,
  record: AnsweringRecord,
): void {
  const { selecting } = tools;
  const { name, type } = record;
  const made = madeOf(tools, image, record);
  const ttl = record.ttl === 0 ? image.defaults.default_ttl : record.ttl;
  if (made !== undefined && change(tools, publisher, image, owner, typeNumber(type), ttl, made.rdatas, made.table))
    return;
  // What stood there may name slots that are no longer its own.
  change(tools, publisher, image, owner, typeNumber(type), 0, []);
  forgetSelection(selecting, image.selected, image.name, name, typeBit(type), 0, !image.handle.active);
}

/** Undefined where a value is none of its type: another node has let it in, and nothing else of the zone is to suffer for it. */
function madeOf(
  { selecting, onFault }: ZoneTools,
  image: ZoneImage,
  record: AnsweringRecord,
): { readonly table: SelectionTable | undefined; readonly rdatas: readonly Uint8Array[] } | undefined {
  const policy = policyOf(record, image.defaults);
  // Of a million records nearly all have neither.
  const isStatic = record.health_check_template === undefined && policy === undefined;
  try {
    const table = isStatic ? undefined : prepareSelection(selecting, image.selected, image.name, record, policy);
    return { table, rdatas: answeredValues(record, table).map((value) => valueRdata(record, value).wire) };
  } catch (error) {
    onFault(image.name, record.name, errorText(error));
    return undefined;
  }
}

/** The values whose RRs the image has, in their order. An answer has one CNAME, and one target of an ALIAS, whatever the method. */
export function answeredValues(
  { type, values }: Pick<AnsweringRecord, "type" | "values">,
  table: SelectionTable | undefined,
): readonly RecordValue[] {
  if (table !== undefined) return table.choices.map(({ index }) => values[index]!);
  return ownsName(type) ? values.slice(0, 1) : values;
}

function change(
  tools: ZoneTools,
  publisher: ZonePublisher,
  image: ZoneImage,
  owner: Uint8Array,
  type: number,
  ttl: number,
  rdatas: readonly Uint8Array[],
  table?: SelectionTable,
): boolean {
  const fault = changeRRset(publisher, owner, type, ttl, rdatas, table);
  if (fault !== undefined) tools.onFault(image.name, `${nameToText(owner)} ${type}`, fault);
  return fault === undefined;
}

/** Brings the SOA to the zone's fields and serial, and with it the NS that it stands in for. */
export function publishSoa(
  publisher: ZonePublisher,
  image: ZoneImage,
  store: Pick<StoreReader, "get">,
  body: ZoneBody,
  serial: number,
): void {
  const before = image.body;
  image.body = body;
  if (image.serial === serial && JSON.stringify(before.soa) === JSON.stringify(body.soa)) return;
  const isNsMoved = before.soa.mname !== body.soa.mname && !hasNs(store, body.name);
  putSoa(publisher, body, serial, isNsMoved);
  image.serial = serial;
}

function hasNs(store: Pick<StoreReader, "get">, zone: string): boolean {
  const stored = store.get("record", [zone, "@", "NS"]);
  return stored !== undefined && stored.shadowedBy === undefined && stored.body.values.length > 0;
}

function putSoa(publisher: ZonePublisher, body: ZoneBody, serial: number, movesNs: boolean): void {
  const wire = wireName(body.name);
  changeRRset(publisher, wire, RRTYPE.SOA, body.default_ttl, [soaRdata(body.soa, serial)]);
  if (movesNs) changeRRset(publisher, wire, RRTYPE.NS, body.default_ttl, [wireName(body.soa.mname)]);
}

/** What `changeRRset` works with; made for a run of changes, because the zone's key is shared. */
export function publisherOf(tools: ZoneTools, image: ZoneImage): ZonePublisher {
  const { writer, apex, owner, buffer } = tools;
  readKey(tools, apex, image.wire);
  return {
    writer,
    zone: image.handle,
    incarnation: image.handle.incarnation,
    apex,
    owner,
    buffer,
    node: 0,
    line: 0,
    column: 0,
    records: 0,
    problems: [],
    problemsOmitted: 0,
    warnings: [],
  };
}

function readKey({ writer }: ZoneTools, key: NameKey, wire: Uint8Array): void {
  readNameKey(key, wire, 0, wire.length, writer.view.control[CONTROL.HASH_SEED]!);
}

const NO_NAME = "with the zone's it is no name";

/** Undefined where the two together are too long: another node has let it in. */
function ownerOf({ onFault }: ZoneTools, image: ZoneImage, name: string): Uint8Array | undefined {
  if (name === "@") return image.wire;
  const result = nameFromText(name, image.wire);
  if (result.kind === "name") return result.name;
  onFault(image.name, name, NO_NAME);
  return undefined;
}

/** The wire form of a name of the store; they are canonical, and so always names. */
export function wireName(text: string, origin?: Uint8Array): Uint8Array {
  const result = nameFromText(text, origin);
  if (result.kind === "error") throw new Error(`${JSON.stringify(text)} is stored and no name: ${result.reason}`);
  return result.name;
}

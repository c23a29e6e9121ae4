/** An image and its model side by side: every change is made to both. */
import { createSharedImage, type SharedImage } from "../../src/image/shared.ts";
import {
  activateZone,
  beginChange,
  createZone,
  deleteZone,
  discardZone,
  endChange,
  ensureNode,
  openImageWriter,
  putRRset,
  removeRRset,
  setNegativeSoa,
  type ZoneHandle,
} from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import type { Chance } from "../support/chance.ts";
import { keyOf, patternRRset, publishNumbered } from "./content.ts";
import { createModelZone, ensureName, type ModelZone, NS, removeValue } from "./model.ts";
import {
  absoluteName,
  encodeValue,
  RELATIVE_NAMES,
  STABLE_NAMES,
  STABLE_ZONE,
  stableValue,
  TYPES,
  ZONES,
} from "./universe.ts";

type Incarnation = { readonly handle: ZoneHandle; readonly model: ModelZone };

export type Subject = {
  readonly shared: SharedImage;
  readonly chance: Chance;
  writer: ImageWriter;
  readonly active: Map<string, Incarnation>;
  /** Made and not active yet. */
  readonly staged: Map<string, Incarnation>;
  version: number;
  /** Names n0, n1, ... of the zone that makes the image grow and shrink; -1 while it is not there. */
  fillerNames: number;
};

const FILLER_ZONE = "filler.";
const FILLER_NAMES_MAX = 9_000;

export function createSubject(chance: Chance): Subject {
  const shared = createSharedImage(chance.below(2 ** 31));
  const writer = openImageWriter(shared);
  publishNumbered(writer, STABLE_ZONE, STABLE_NAMES, stableValue);
  return { shared, chance, writer, active: new Map(), staged: new Map(), version: 0, fillerNames: -1 };
}

/** Makes one random change. */
export function change(subject: Subject): void {
  const { chance } = subject;
  const zone = chance.pick(ZONES);
  const kind = chance.below(1_000);
  if (kind < 40) stage(subject, zone);
  else if (kind < 65) activate(subject, zone);
  else if (kind < 75) discard(subject, zone);
  else if (kind < 90) remove(subject, zone);
  else if (kind < 92) fill(subject);
  else if (kind < 93) recover(subject);
  else changeNames(subject, zone, kind % 10 === 0 ? 5 : 1);
}

function stage(subject: Subject, zone: string): void {
  discard(subject, zone);
  const handle = createZone(subject.writer, keyOf(subject.writer.view, zone));
  setNegativeSoa(subject.writer, handle, patternRRset(6, subject.version));
  subject.staged.set(zone, { handle, model: createModelZone() });
  for (let name = 0; name < 12; name++) changeName(subject, zone, subject.staged.get(zone)!);
}

function activate(subject: Subject, zone: string): void {
  const staged = subject.staged.get(zone);
  if (staged === undefined) return;
  activateZone(subject.writer, staged.handle, keyOf(subject.writer.view, zone));
  subject.active.set(zone, staged);
  subject.staged.delete(zone);
}

function discard(subject: Subject, zone: string): void {
  const staged = subject.staged.get(zone);
  if (staged === undefined) return;
  discardZone(subject.writer, staged.handle);
  subject.staged.delete(zone);
}

function remove(subject: Subject, zone: string): void {
  const existed = deleteZone(subject.writer, keyOf(subject.writer.view, zone));
  if (existed !== subject.active.delete(zone)) throw new Error(`deleting ${zone} said ${existed}`);
}

function fill(subject: Subject): void {
  const { writer, chance } = subject;
  if (subject.fillerNames >= 0 && chance.below(3) === 0) {
    deleteZone(writer, keyOf(writer.view, FILLER_ZONE));
    subject.fillerNames = -1;
    return;
  }
  const version = subject.version++;
  subject.fillerNames = chance.below(FILLER_NAMES_MAX);
  publishNumbered(writer, FILLER_ZONE, subject.fillerNames, (index) => (version * 31 + index) & 0x7fff_ffff);
}

/** A successor takes over: it does not know the staged zones, whose memory is found again. */
function recover(subject: Subject): void {
  subject.writer = openImageWriter(subject.shared);
  subject.staged.clear();
}

function changeNames(subject: Subject, zone: string, count: number): void {
  const incarnation = subject.active.get(zone) ?? subject.staged.get(zone);
  if (incarnation === undefined) return;
  if (count > 1) beginChange(subject.writer, incarnation.handle);
  for (let name = 0; name < count; name++) changeName(subject, zone, incarnation);
  if (count > 1) endChange(subject.writer, incarnation.handle);
}

function changeName(subject: Subject, zone: string, { handle, model }: Incarnation): void {
  const { writer, chance } = subject;
  const relative = chance.pick(RELATIVE_NAMES);
  const absolute = absoluteName(relative, zone);
  const key = keyOf(writer.view, absolute);
  const type = chance.pick(TYPES);
  const cut = type === NS && relative !== "";
  const kind = chance.below(10);
  if (kind === 0) {
    ensureNode(writer, handle, key);
    ensureName(model, relative);
  } else if (kind < 5) {
    const removed = removeRRset(writer, handle, key, type, cut);
    if (removed !== removeValue(model, relative, type)) throw new Error(`removing ${absolute} ${type}: ${removed}`);
  } else {
    subject.version = (subject.version + 1) % 2 ** 18;
    const value = encodeValue(absolute, zone, subject.version);
    putRRset(writer, handle, ensureNode(writer, handle, key), patternRRset(type, value), cut);
    ensureName(model, relative).set(type, value);
  }
}

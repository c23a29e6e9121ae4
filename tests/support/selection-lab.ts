/**
 * Selected RRsets in a lab without a store: zone text as in zone-lab.ts, of which single RRsets are then put under a policy
 * that is given in words. Probes and regions go by names.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createLookup, findOverride, findZone } from "../../src/answer/lookup.ts";
import { cidrFromText, ipFromText } from "../../src/base/ip.ts";
import { typeFromText } from "../../src/dns/type-names.ts";
import { parseZoneFile } from "../../src/dns/zone-file.ts";
import { HEALTH, setHealth } from "../../src/image/health.ts";
import { METHOD, SELECTION_FLAG, UNIT_WORDS, ZONE } from "../../src/image/layout.ts";
import type { NameKey } from "../../src/image/name-key.ts";
import { putRegions, regionNumber, setOwnRegion } from "../../src/image/regions.ts";
import type { RRsetWire } from "../../src/image/rrset-block.ts";
import type { SelectionCandidate } from "../../src/image/selection.ts";
import { CONTROL } from "../../src/image/shared.ts";
import { ensureNode, putRRset, type ZoneHandle } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";
import { keyOf } from "../image/content.ts";
import { type LabOptions, openLab, type ZoneLab } from "./zone-lab.ts";

export type Policy = {
  readonly method: keyof typeof METHOD;
  readonly single?: boolean;
  /** Client affinity for so many seconds. */
  readonly affinitySeconds?: number;
  readonly preferred?: readonly string[];
  readonly ttl?: number;
};

/** A value as rdata in text. `probe` names what gates it; without one it is not probed. */
export type Value = {
  readonly value: string;
  readonly probe?: string;
  readonly region?: string;
  readonly weight?: number;
};

export type SelectionLab = ZoneLab & {
  /** Puts the RRset `www.example.test. A` under a policy: that of an override of this name, else of the zone. */
  readonly select: (what: string, policy: Policy, values: readonly (Value | string)[]) => void;
  readonly health: (probe: string, state: keyof typeof HEALTH, latencyUs?: number) => void;
  /** Mappings such as `10.1.0.0/16` to `west`, and the node's own region. */
  readonly regions: (mappings: Readonly<Record<string, string>>, own?: string) => void;
  readonly clock: (nowSeconds: number) => void;
  /** The values of the answer section, in its order. */
  readonly values: (question: string, client?: string) => readonly string[];
};

const OWNER_AND_FIELDS = 12;

export function openSelectionLab(texts: readonly string[], options: LabOptions = {}): SelectionLab {
  const lab = openLab(texts, options);
  const health = new Int32Array(lab.shared.health);
  const control = new Int32Array(lab.shared.control);
  const slots = new Map<string, number>();
  const slotOf = (probe: string): number => {
    const slot = slots.get(probe) ?? slots.size + 1;
    slots.set(probe, slot);
    return slot;
  };
  return {
    ...lab,
    select(what, policy, values) {
      const [owner = "", type = ""] = what.split(" ");
      const key = keyOf(lab.writer.view, owner);
      const handle = handleOf(lab.writer, key);
      const made = selectedRRset(owner, type, policy, values.map(asValue), slotOf);
      putRRset(lab.writer, handle, ensureNode(lab.writer, handle, key), made, false);
    },
    health: (probe, state, latencyUs = 0) => setHealth(health, slotOf(probe), HEALTH[state], latencyUs),
    regions(mappings, own) {
      const prefixes = Object.entries(mappings).map(([text, region]) => {
        const cidr = cidrFromText(text);
        assert(cidr !== undefined, text);
        return { address: cidr.address, prefixLength: cidr.prefixBits, region: regionNumber(region) };
      });
      putRegions(lab.writer, prefixes);
      setOwnRegion(lab.writer, own === undefined ? 0 : regionNumber(own));
    },
    clock(nowSeconds) {
      control[CONTROL.CLOCK_SECONDS] = nowSeconds;
    },
    values: (question, client) => {
      const lines = lab.ask(question, client === undefined ? {} : { client: addressOf(client) });
      return lines
        .filter((line) => line.startsWith("answer "))
        .map((line) => line.split("\t").join(" ").split(" ").at(-1)!);
    },
  };
}

export function addressOf(text: string): Uint8Array {
  return ipFromText(text) ?? assert.fail(text);
}

function asValue(value: Value | string): Value {
  return typeof value === "string" ? { value } : value;
}

/** The incarnation that a name's RRsets belong to: the overrides where they have it, else its zone. */
function handleOf({ view }: ImageWriter, key: NameKey): ZoneHandle {
  const overrides = view.control[CONTROL.OVERRIDES]!;
  const lookup = createLookup();
  const isOverride = overrides !== 0 && findOverride(view, overrides, key) !== 0;
  const body = isOverride ? overrides : findZone(view, lookup, key, 0);
  assert.notEqual(body, 0, "no zone for the name");
  const apexLabel = isOverride ? key.labels : lookup.apexLabel;
  return {
    incarnation: view.words[body * UNIT_WORDS + ZONE.INCARNATION]!,
    body,
    apex: view.words[body * UNIT_WORDS + ZONE.APEX]!,
    labels: key.labels - apexLabel,
    length: key.length - key.offsets[apexLabel]!,
    active: true,
    pointing: { names: new Map(), rrsets: new Map() },
    nsIsFromSoa: false,
  };
}

function selectedRRset(
  owner: string,
  typeText: string,
  policy: Policy,
  values: readonly Value[],
  slotOf: (probe: string) => number,
): RRsetWire {
  const type = typeFromText(typeText) ?? assert.fail(typeText);
  const ttl = policy.ttl ?? 30;
  const rrs: Uint8Array[] = [];
  const candidates: SelectionCandidate[] = [];
  let at = 0;
  for (const { value, probe, region, weight } of values) {
    const rdata = rdataOf(owner, typeText, value);
    const rr = Buffer.alloc(OWNER_AND_FIELDS + rdata.length);
    rr.writeUInt16BE(0xc00c, 0);
    rr.writeUInt16BE(type, 2);
    rr.writeUInt16BE(1, 4);
    rr.writeInt32BE(ttl, 6);
    rr.writeUInt16BE(rdata.length, 10);
    rr.set(rdata, OWNER_AND_FIELDS);
    rrs.push(rr);
    candidates.push({
      offset: at,
      length: rr.length,
      health: probe === undefined ? 0 : slotOf(probe),
      region: region === undefined ? 0 : regionNumber(region),
      weight: weight ?? 0,
      hash: createHash("sha256").update(value).digest().readInt32BE(),
    });
    at += rr.length;
  }
  const flags = (policy.single ? SELECTION_FLAG.SINGLE : 0) | (policy.affinitySeconds ? SELECTION_FLAG.AFFINITY : 0);
  const selection = {
    method: METHOD[policy.method],
    flags,
    affinitySeconds: policy.affinitySeconds ?? 300,
    candidates,
    preferred: (policy.preferred ?? []).map(regionNumber),
  };
  const wire = Buffer.concat(rrs);
  const none = new Uint8Array(0);
  return { type, ttl, count: rrs.length, wire, length: wire.length, pointers: none, pointerCount: 0, selection };
}

/** The rdata of one value in text, with names written out. */
function rdataOf(owner: string, type: string, value: string): Uint8Array {
  let found: Uint8Array | undefined;
  const { errors } = parseZoneFile(Buffer.from(`. 1 SOA . . 1 1 1 1 1\n${owner} 1 ${type} ${value}\n`), {
    origin: Uint8Array.of(0),
    onRecord(_owner, _ownerLength, has, _ttl, rdata, rdataLength) {
      if (has === typeFromText(type)) found = rdata.slice(0, rdataLength);
    },
  });
  assert.deepEqual(errors, []);
  return found ?? assert.fail(`${type} ${value}`);
}

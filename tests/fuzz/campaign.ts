import fc from "fast-check";
import { inquiries, ZONES } from "../interop/zone-questions.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { mutateInto, newScratch, packetArbitrary, packetCorpus } from "../support/mutate.ts";
import { classify } from "./classify.ts";
import { faultOf, type Transport } from "./oracle.ts";
import { createSubject, type Subject } from "./subject.ts";

export type Campaign = {
  readonly packets: number;
  /** Packets by what they were: see classify.ts. */
  readonly kinds: ReadonlyMap<string, number>;
  readonly rcodes: ReadonlyMap<number, number>;
};

export type CampaignOptions = {
  readonly packets: number;
  /** The same seed gives the same packets. */
  readonly seed: number;
  /** Overrides stand over some of the names. */
  readonly overrides?: boolean;
  readonly onProgress?: (packets: number) => void;
};

/** Every so many names of the differential test's inquiries make the corpus. */
const EVERY_NAME = 7;
/** One packet in so many is made by fast-check, which takes its time. */
const EVERY_ARBITRARY = 20;
const ARBITRARY_BLOCK = 1_000;
const PROGRESS_EVERY = 500_000;

function corpusOfZones(): Buffer[] {
  const names = [...new Set(inquiries().map(({ name }) => name))];
  return packetCorpus(names.filter((_, index) => index % EVERY_NAME === 0));
}

/** The plain names that the differential test asks for. */
function namesOfZones(): readonly string[] {
  const names = inquiries().map(({ name }) => `${name.toLowerCase().replace(/\.$/, "")}.`);
  return [...new Set(names)].filter((name) => /^[a-z0-9_*.-]{2,200}$/.test(name));
}

/** Every third name has an override, of six forms in turn. Aliases lead to addresses: what fails is no packet's doing. */
function overridesOf(names: readonly string[]): string {
  const some = names.filter((_, index) => index % 3 === 0);
  return some.map((name, index) => overrideOf(name, index, some)).join("\n");
}

function overrideOf(name: string, index: number, some: readonly string[]): string {
  const form = index % 6;
  const next = some[index + 5 - form] ?? name;
  if (form < 3 && next === name) return "";
  const other = some[(index * 7) % some.length];
  switch (form) {
    case 0:
      return `${name} CNAME ${next}`;
    case 1:
      return `${name} ALIAS ${next}`;
    case 2:
      return `${name} MX 10 ${next}\n${name} MX 20 ${other}`;
    case 3:
      return Array.from({ length: 40 }, (_, each) => `${name} TXT "${"x".repeat(50)}${each}"`).join("\n");
    case 4:
      return `${name} AAAA 2001:db8::1\n${name} AAAA 2001:db8::2`;
    default:
      return `${name} A 10.0.0.1\n${name} A 10.0.0.2\n${name} AAAA 2001:db8::3`;
  }
}

/** Packets without end; the bytes are only good until the next one is taken. */
function* packets(chance: Chance): Generator<Buffer> {
  const corpus = corpusOfZones();
  const scratch = newScratch();
  const arbitrary = packetArbitrary();
  for (;;) {
    for (const made of fc.sample(arbitrary, { numRuns: ARBITRARY_BLOCK, seed: chance.below(2 ** 31) })) {
      yield Buffer.from(made);
      for (let left = EVERY_ARBITRARY - 1; left > 0; left -= 1) {
        mutateInto(scratch, chance, corpus);
        yield scratch.bytes.subarray(0, scratch.length);
      }
    }
  }
}

function answerOrThrow(subject: Subject, packet: Buffer, transport: Transport): Buffer | undefined {
  try {
    return subject.answer(packet, transport);
  } catch (error) {
    throw new Error(`${transport} ${packet.toString("hex")}: threw ${error instanceof Error ? error.stack : error}`);
  }
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/**
 * Sends mutated packets to an answerer in this process and holds every response against the oracle. Throws at the first
 * packet that is answered wrongly, with its bytes.
 */
export function runCampaign({ packets: total, seed, overrides = false, onProgress }: CampaignOptions): Campaign {
  const subject = createSubject(ZONES, overrides ? overridesOf(namesOfZones()) : "");
  const chance = seededChance(seed);
  const kinds = new Map<string, number>();
  const rcodes = new Map<number, number>();
  let sent = 0;
  for (const packet of packets(chance)) {
    if (sent === total) break;
    sent += 1;
    const transport: Transport = chance.below(4) === 0 ? "tcp" : "udp";
    const response = answerOrThrow(subject, packet, transport);
    const fault = faultOf(packet, response, transport);
    if (fault !== undefined) {
      const answered = response === undefined ? "silence" : response.toString("hex");
      throw new Error(`${fault}\n  ${transport} packet ${packet.toString("hex")}\n  answered ${answered}`);
    }
    count(kinds, classify(packet).kind);
    if (response !== undefined) count(rcodes, response[3]! & 15);
    if (sent % PROGRESS_EVERY === 0) onProgress?.(sent);
  }
  return { packets: sent, kinds, rcodes };
}

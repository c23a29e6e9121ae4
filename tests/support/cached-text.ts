/** Cached answers as text: records as in a zone file, put into the form of the cache by what `resolve` does it with. */
import assert from "node:assert/strict";
import { CLASS, RRTYPE } from "../../src/dns/codes.ts";
import type { ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText, nameToText } from "../../src/dns/name.ts";
import { typeFromText } from "../../src/dns/type-names.ts";
import { parseZoneFile } from "../../src/dns/zone-file.ts";
import type { CachedAnswer } from "../../src/image/cache.ts";
import { encodeEntry } from "../../src/resolve/entry.ts";

export type CachedText = {
  readonly route: number;
  /** Full names and TTLs, one to a line. The CNAMEs that lead on from the question are the chain. */
  readonly answers?: string;
  readonly authorities?: string;
  readonly isOpen?: boolean;
  readonly rcode?: number;
  readonly extendedError?: number;
  readonly flags?: number;
  /** Seconds from now on; 300 where it is left out. */
  readonly seconds?: number;
  /** How long it is kept when its time is over. */
  readonly keptSeconds?: number;
};

export function cachedText(
  question: string,
  answer: CachedText,
  { routing, nowSeconds }: { readonly routing: number; readonly nowSeconds: number },
): CachedAnswer {
  const [owner = "", typeText = ""] = question.split(" ");
  const name = wireOf(owner);
  const answers = records(answer.answers ?? "");
  const expiresSeconds = nowSeconds + (answer.seconds ?? 300);
  const entry = encodeEntry(
    { name, type: typeFromText(typeText)!, flags: answer.flags ?? 0, route: answer.route },
    {
      rcode: answer.rcode ?? 0,
      extendedError: answer.extendedError ?? -1,
      answers,
      authorities: records(answer.authorities ?? ""),
      followed: chainOf(name, answers),
      isOpen: answer.isOpen ?? false,
    },
    {
      routing,
      storedSeconds: nowSeconds,
      expiresSeconds,
      keptUntilSeconds: expiresSeconds + (answer.keptSeconds ?? 0),
    },
  );
  return entry ?? assert.fail("too large");
}

function chainOf(question: Uint8Array, answers: readonly ResourceRecord[]): readonly ResourceRecord[] {
  const chain: ResourceRecord[] = [];
  for (let name = textOf(question); ; ) {
    const link = answers.find((record) => record.type === RRTYPE.CNAME && textOf(record.name) === name);
    if (link === undefined || chain.includes(link)) return chain;
    chain.push(link);
    name = textOf(link.rdata);
  }
}

function textOf(name: Uint8Array): string {
  return nameToText(name).toLowerCase();
}

function records(text: string): ResourceRecord[] {
  return text.split("\n").flatMap((line) => (line === "" ? [] : [recordOf(line)]));
}

function recordOf(line: string): ResourceRecord {
  const found: ResourceRecord[] = [];
  // A zone file has one SOA.
  const file = line.includes(" SOA ") ? line : `. 1 SOA . . 1 1 1 1 1\n${line}`;
  const { errors } = parseZoneFile(Buffer.from(`${file}\n`), {
    origin: Uint8Array.of(0),
    onRecord(owner, ownerLength, type, ttl, rdata, rdataLength) {
      found.push({
        name: owner.slice(0, ownerLength),
        type,
        class: CLASS.IN,
        ttl,
        rdata: rdata.slice(0, rdataLength),
      });
    },
  });
  assert.deepEqual(errors, []);
  return found.at(-1) ?? assert.fail(line);
}

function wireOf(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { temporaryStore } from "../../tests/support/store.ts";
import { recordBody, zoneBody } from "../../tests/support/store-objects.ts";
import { decodeMessage } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { rdataToText } from "../dns/rdata.ts";
import type { RecordType } from "../model/objects.ts";
import type { EncodedTransfer } from "../primary/axfr-encode.ts";
import { TRANSFER_MESSAGE_BYTES } from "../primary/limits.ts";
import type { StoreTransaction } from "../store/store.ts";
import { openSnapshotReader } from "../store/zone-snapshot.ts";
import { createKeptZones } from "./transfer-kept.ts";
import { KEPT_CHANGES_MAX } from "./transfer-limits.ts";
import { encodeZone } from "./transfer-thread.ts";
import { type TransferZone, transferOf } from "./transfer-zone.ts";

const ZONE = "corp.test.";
const BYTES_MAX = 2 ** 24;

async function world() {
  const opened = await temporaryStore();
  const { store, directory } = opened;
  const reader = openSnapshotReader(directory);
  const kept = createKeptZones(store, BYTES_MAX);
  const read = (): TransferZone =>
    reader.read(ZONE, (snapshot) => {
      assert.ok(snapshot !== undefined);
      return encodeZone(snapshot);
    });
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    tx.setState(ZONE, "active");
  });
  return {
    ...{ store, kept, read },
    /** Reads the zone and keeps it. */
    keep: () => {
      const watch = kept.watch(ZONE);
      const zone = read();
      watch.end();
      return kept.keep(zone, watch);
    },
    [Symbol.asyncDispose]: async () => {
      kept[Symbol.dispose]();
      await reader.close();
      await opened[Symbol.asyncDispose]();
    },
  };
}

type Lines = { readonly soa: readonly (string | undefined)[]; readonly rest: readonly string[] };

/** The SOA at both ends, and all between them in an order of their own. */
function linesOf({ messages, aliases }: EncodedTransfer): Lines {
  const lines = messages.flatMap((bytes, index) => {
    assert.ok(bytes.length <= TRANSFER_MESSAGE_BYTES);
    const decoded = decodeMessage(bytes);
    assert.ok(decoded.kind === "message");
    assert.equal(decoded.message.questions.length, index === 0 ? 1 : 0);
    return decoded.message.answers.map(
      ({ name, ttl, type, rdata }) => `${nameToText(name)} ${ttl} ${type} ${rdataToText(type, rdata)}`,
    );
  });
  const others = aliases.map(({ owner, target, ttl }) => `${nameToText(owner)} ${ttl} ALIAS ${nameToText(target)}`);
  const isWhole = aliases.length === 0;
  return {
    soa: [lines[0], isWhole ? lines.at(-1) : lines[0]],
    rest: [...lines.slice(1, isWhole ? -1 : undefined), ...others].sort(),
  };
}

type Step =
  | {
      readonly kind: "put";
      readonly name: number;
      readonly type: RecordType;
      readonly size: number;
      readonly ttl: number;
    }
  | { readonly kind: "delete"; readonly name: number; readonly type: RecordType }
  | { readonly kind: "soa"; readonly mname: string };

const NAMES = 60;
const nameText = (name: number) => (name === 0 ? "@" : name % 7 === 0 ? `deep.n${name}` : `n${name}`);

function textOf(type: RecordType, size: number): string {
  switch (type) {
    case "A":
      return `10.0.0.${size % 256}`;
    case "TXT":
      return "x".repeat(size);
    default:
      return `target${size}.example.`;
  }
}

function take(tx: StoreTransaction, step: Step): void {
  if (step.kind === "soa") {
    const { soa, ...rest } = zoneBody(ZONE);
    tx.put("zone", { ...rest, soa: { ...soa, mname: step.mname } });
    return;
  }
  const { type } = step;
  const name = nameText(step.name);
  if (step.kind === "delete") {
    tx.delete("record", [ZONE, name, type]);
    return;
  }
  // Several values of a long text fill a message, so that names lie at boundaries.
  const count = type === "TXT" ? 1 + (step.size % 4) : 1;
  const values = Array.from({ length: count }, (_, index) => ({ value: textOf(type, step.size + index) }));
  tx.put("record", recordBody(ZONE, name, { type, ttl: step.ttl, values }));
}

const TYPES = ["A", "TXT", "ALIAS", "NS"] as const satisfies readonly RecordType[];
const name = fc.integer({ min: 0, max: NAMES });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("put" as const),
      name,
      type: fc.constantFrom(...TYPES),
      size: fc.integer({ min: 1, max: 4_000 }),
      ttl: fc.constantFrom(0, 60),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), name, type: fc.constantFrom(...TYPES) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("soa" as const), mname: fc.constantFrom("a.example.", "b.") }),
  },
);

test("what is kept and brought up to date is the zone as it is encoded anew", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 100, maxLength: 150 }),
      fc.array(fc.array(step, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 8 }),
      async (before, batches) => {
        await using lab = await world();
        const { store, kept } = lab;
        await store.write((tx) => {
          for (const one of before) take(tx, one);
        });
        lab.keep();
        for (const batch of batches) {
          await store.write((tx) => {
            for (const one of batch) take(tx, one);
          });
          const given = await kept.get(ZONE);
          assert.ok(given !== undefined);
          assert.equal(given.transfer.serial, store.serialOf(ZONE));
          assert.deepEqual(linesOf(given.transfer), linesOf(transferOf(lab.read())));
        }
      },
    ),
    { numRuns: 12 },
  );
});

test("what changed while the zone was read is brought in, and what it has already is not", async () => {
  await using lab = await world();
  const { store, kept } = lab;
  const put = (value: string) =>
    store.write((tx) => void tx.put("record", recordBody(ZONE, "www", { values: [{ value }] })));
  const watch = kept.watch(ZONE);
  await put("10.0.0.1");
  const early = lab.read();
  await put("10.0.0.2");
  watch.end();
  assert.ok(linesOf(kept.keep(early, watch)).rest.includes(`www.${ZONE} 3600 1 10.0.0.1`));
  const given = await kept.get(ZONE);
  assert.equal(given?.isPatched, true);
  assert.ok(given !== undefined && linesOf(given.transfer).rest.includes(`www.${ZONE} 3600 1 10.0.0.2`));
  assert.equal((await kept.get(ZONE))?.isPatched, false);
});

test("another life or default TTL of the zone, and more changes than are kept, end what is kept", async () => {
  await using lab = await world();
  const { store, kept } = lab;
  const isKept = async () => (await kept.get(ZONE)) !== undefined;
  lab.keep();
  await store.write((tx) => void tx.put("zone", zoneBody(ZONE, { default_ttl: 77 })));
  assert.equal(await isKept(), false);
  lab.keep();
  await store.write((tx) => {
    tx.deleteZone(ZONE);
    tx.put("zone", zoneBody(ZONE));
    tx.setState(ZONE, "active");
  });
  assert.equal(await isKept(), false);
  lab.keep();
  assert.equal(await isKept(), true);
  await store.write((tx) => {
    for (let index = 0; index <= KEPT_CHANGES_MAX; index++) tx.put("record", recordBody(ZONE, `n${index}`));
  });
  assert.equal(await isKept(), false);
  assert.deepEqual(kept.stats(), { zones: 0, bytes: 0 });
});

test("who asks while a change is brought in waits for it, and for those after it", async () => {
  await using lab = await world();
  const { store, kept } = lab;
  await store.write((tx) => {
    for (let index = 0; index < 8_000; index++) tx.put("record", recordBody(ZONE, `n${index}`));
  });
  lab.keep();
  const put = (name: string) => store.write((tx) => void tx.put("record", recordBody(ZONE, name, { type: "TXT" })));
  await put("n1");
  const first = kept.get(ZONE);
  await put("n7999");
  const [one, two] = await Promise.all([first, kept.get(ZONE)]);
  assert.ok(one !== undefined && two !== undefined);
  assert.ok(two.transfer.serial > one.transfer.serial);
  assert.equal(two.transfer.serial, store.serialOf(ZONE));
  assert.deepEqual(linesOf(two.transfer), linesOf(transferOf(lab.read())));
});

test("what another node has let in and no answer has is in no transfer, and the rest of the zone is", async () => {
  await using opened = await world();
  const { store, keep, kept } = opened;
  await store.write((tx) => void tx.put("record", recordBody(ZONE, "good")));
  keep();
  // The store takes what a merge takes: no rule of the model stands before it.
  await store.write((tx) => {
    tx.put("record", recordBody(ZONE, "bad1", { values: [{ value: "no address" }] }));
    tx.put("record", recordBody(ZONE, "bad2", { id: "rec_2", type: "MX", values: [{ value: "no host" }] }));
    tx.put("record", recordBody(ZONE, "bad3", { id: "rec_3", type: "ALIAS", values: [{ value: "no host" }] }));
    tx.put("record", recordBody(ZONE, "@", { id: "rec_4", type: "CNAME", values: [{ value: "x." }] }));
  });
  const owners = ({ rest }: Lines) => rest.map((line) => line.split(" ")[0]);
  assert.deepEqual(owners(linesOf(transferOf(opened.read()))), [ZONE, `good.${ZONE}`]);
  const patched = await kept.get(ZONE);
  assert.ok(patched?.isPatched);
  assert.deepEqual(linesOf(patched.transfer), linesOf(transferOf(opened.read())));
});

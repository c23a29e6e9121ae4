/** What the cache does when it is full. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { cachedAnswer, cacheKey, readCached } from "../../tests/support/cached-answers.ts";
import { type CachedAnswer, ENTRY } from "./cache.ts";
import { findCached, isIntact, noteUsed, openCacheView, refreshCache } from "./cache-view.ts";
import { createCacheWriter } from "./cache-writer.ts";
import { createSharedImage } from "./shared.ts";

const MIB = 2 ** 20;

function lab(bytes: number) {
  const shared = createSharedImage(5);
  const clock = { seconds: 1_000 };
  const writer = createCacheWriter(shared, { nowSeconds: () => clock.seconds });
  writer.resize(bytes);
  const view = openCacheView(shared);
  const find = (name: string): number => findCached(view, cacheKey(shared, name), 1, 0);
  return { shared, clock, writer, view, find };
}

test("the oldest make room for new ones, but what is used stays for as long as it is used", () => {
  const { writer, view, find } = lab(MIB);
  const total = 40_000;
  for (let index = 0; index < total; index++) {
    writer.put(cachedAnswer(`n${index}.test`));
    if (index >= 10 && index % 1_000 === 0) {
      for (let used = 0; used < 10; used++) {
        assert.ok(find(`n${used}.test`) > 0, `n${used} after ${index}`);
        noteUsed(view);
      }
    }
  }
  assert.ok(find(`n${total - 1}.test`) > 0);
  assert.equal(find("n20.test"), 0);
  const { entries, bytes, evictions, insertions } = writer.figures();
  assert.ok(bytes <= MIB * 0.875 && bytes > MIB * 0.6, `${bytes} bytes`);
  assert.equal(insertions, total);
  assert.equal(evictions, total - entries);
});

test("what was used goes too once it has expired, or all are used", () => {
  const { writer, view, find, clock } = lab(MIB);
  writer.put(cachedAnswer("old.test"));
  find("old.test");
  noteUsed(view);
  clock.seconds = 2_000;
  const fresh = { storedSeconds: 2_000, expiresSeconds: 9_000, keptUntilSeconds: 9_000 };
  for (let index = 0; index < 40_000; index++) {
    assert.ok(writer.put(cachedAnswer(`n${index}.test`, fresh)));
    find(`n${index}.test`);
    noteUsed(view);
  }
  assert.equal(find("old.test"), 0);
  assert.ok(find("n39999.test") > 0);
});

test("an answer that is put again in a full cache does not come back as it was", () => {
  const { writer, view, find } = lab(MIB);
  for (let round = 0; round < 60_000; round++) {
    writer.put(cachedAnswer(round % 7 === 0 ? "again.test" : `n${round}.test`, { route: 16 + round }));
    if (round % 7 !== 0) continue;
    const entry = find("again.test");
    assert.equal(view.words[entry + ENTRY.ROUTE], 16 + round);
    noteUsed(view);
  }
});

test("memory grows with use, and not beyond the size", () => {
  const { shared, writer } = lab(MIB);
  assert.equal(shared.cache.byteLength, MIB);
  for (let index = 0; index < 50_000; index++) writer.put(cachedAnswer(`n${index}.test`));
  assert.equal(shared.cache.byteLength, MIB);
  writer.resize(2 * MIB);
  assert.equal(shared.cache.byteLength, 2 * MIB);
});

test("positions run through all 32 bits and begin anew, and no entry is lost or taken for another", () => {
  const shared = createSharedImage(6);
  // Behind this head a position has few laps left: it is what a cache has that wrote 64 GiB.
  new Int32Array(shared.cache)[0] = -(2 ** 18);
  const writer = createCacheWriter(shared, { nowSeconds: () => 1_000 });
  writer.resize(MIB);
  const view = openCacheView(shared);
  let wrapped = 0;
  let last = writer.position();
  for (let index = 0; index < 200_000; index++) {
    assert.ok(writer.put(cachedAnswer(`n${index % 9_001}.test`, { route: 16 + index })));
    const entry = findCached(view, cacheKey(shared, `n${index % 9_001}.test`), 1, 0);
    assert.equal(view.words[entry + ENTRY.ROUTE], 16 + index);
    const start = view.words[entry + ENTRY.START]!;
    assert.ok(start !== 0 && isIntact(view, start));
    if (writer.position() < last) wrapped++;
    last = writer.position();
  }
  assert.equal(wrapped, 1);
});

type Step =
  | { readonly kind: "put"; readonly name: number; readonly type: number; readonly size: number; readonly life: number }
  | { readonly kind: "find"; readonly name: number; readonly type: number; readonly isUsed: boolean }
  | { readonly kind: "flush"; readonly name: number; readonly isSubtree: boolean }
  | { readonly kind: "pass"; readonly seconds: number }
  | { readonly kind: "resize"; readonly pages: number };

const NAMES = 40;
const nameOf = (index: number): string => (index % 4 === 0 ? `n${index}.test` : `s${index}.n${index & ~3}.test`);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.record({
      kind: fc.constant("put" as const),
      name: fc.nat(NAMES - 1),
      type: fc.constantFrom(1, 28, 16),
      size: fc.oneof(fc.nat(300), fc.nat(60_000)),
      life: fc.nat(500),
    }),
  },
  {
    weight: 60,
    arbitrary: fc.record({
      kind: fc.constant("find" as const),
      name: fc.nat(NAMES - 1),
      type: fc.constantFrom(1, 28, 16),
      isUsed: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("flush" as const), name: fc.nat(NAMES - 1), isSubtree: fc.boolean() }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("pass" as const), seconds: fc.nat(200) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("resize" as const), pages: fc.integer({ min: 8, max: 40 }) }) },
);

test("whatever is put, found, flushed and resized: an answer is the last one put for its question, or none", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 400 }), (steps) => {
      const { shared, writer, view, clock } = lab(MIB / 2);
      const model = new Map<string, CachedAnswer>();
      const check = (name: number, type: number): number => {
        refreshCache(view);
        const entry = findCached(view, cacheKey(shared, nameOf(name)), type, 0);
        const last = model.get(`${nameOf(name)} ${type}`);
        if (entry === 0) return 0;
        assert.ok(last !== undefined && isIntact(view, view.words[entry + ENTRY.START]!));
        const { routing: _, ...expected } = last;
        assert.deepEqual(readCached(view, entry), expected);
        return entry;
      };
      for (const one of steps) {
        if (one.kind === "put") {
          const bytes = Uint8Array.from({ length: one.size }, (_, index) => (index * 7 + one.life) & 0xff);
          const { seconds } = clock;
          const times = { storedSeconds: seconds, expiresSeconds: seconds + one.life, keptUntilSeconds: seconds + 600 };
          const answer = cachedAnswer(nameOf(one.name), { type: one.type, bytes, ...times });
          model.set(`${nameOf(one.name)} ${one.type}`, answer);
          assert.ok(writer.put(answer));
          assert.ok(check(one.name, one.type) > 0);
        } else if (one.kind === "find") {
          if (check(one.name, one.type) > 0 && one.isUsed) noteUsed(view);
        } else if (one.kind === "flush") {
          const name = nameOf(one.name);
          writer.flush({ name: cacheKey(shared, name), isSubtree: one.isSubtree });
          for (const key of model.keys()) {
            const of = key.split(" ")[0]!;
            if (of === name || (one.isSubtree && of.endsWith(`.${name}`))) model.delete(key);
          }
        } else if (one.kind === "pass") clock.seconds += one.seconds;
        else {
          writer.resize(one.pages * 2 ** 16);
          model.clear();
        }
        const { bytes, capacityBytes, entries } = writer.figures();
        assert.ok(bytes <= capacityBytes && entries <= model.size);
      }
      let found = 0;
      for (let name = 0; name < NAMES; name++) for (const type of [1, 28, 16]) if (check(name, type) > 0) found++;
      assert.equal(found, writer.figures().entries);
    }),
    { numRuns: 60 },
  );
});

import assert from "node:assert/strict";
import test from "node:test";
import { cachedAnswer, cacheKey, readCached } from "../../tests/support/cached-answers.ts";
import { CACHED_BYTES_MAX, type CachedAnswer, ENTRY, USED_MAX } from "./cache.ts";
import {
  cameSince,
  findCached,
  isIntact,
  isRoutedAt,
  noteRefreshing,
  noteRouting,
  noteUsed,
  openCacheView,
  refreshCache,
  touchBucket,
  touchEntry,
  useCount,
} from "./cache-view.ts";
import { createCacheWriter } from "./cache-writer.ts";
import { createSharedImage } from "./shared.ts";

const MIB = 2 ** 20;

function lab(bytes = MIB) {
  const shared = createSharedImage(77);
  const clock = { seconds: 1_000 };
  const writer = createCacheWriter(shared, { nowSeconds: () => clock.seconds });
  writer.resize(bytes);
  const view = openCacheView(shared);
  const find = (name: string, type = 1, flags = 0): number => findCached(view, cacheKey(shared, name), type, flags);
  const read = (name: string): Omit<CachedAnswer, "routing"> | undefined => {
    const entry = find(name);
    return entry === 0 ? undefined : readCached(view, entry);
  };
  const start = (entry: number): number => view.words[entry + ENTRY.START]!;
  return { shared, clock, writer, view, find, read, start };
}

function plain({ routing: _, ...rest }: CachedAnswer): Omit<CachedAnswer, "routing"> {
  return rest;
}

test("an answer is found as it was put, by name, type and flags, whatever the case of the question", () => {
  const { writer, read, find } = lab();
  const answer = cachedAnswer("www.example.com", {
    flags: 3,
    type: 28,
    rcode: 3,
    extendedError: 22,
    answers: 2,
    authorities: 1,
    pointers: [0, 16],
    ttls: [6, 22],
    targets: [12],
    isOpen: true,
    keptUntilSeconds: 90_000,
  });
  assert.ok(writer.put(answer));
  assert.ok(writer.put(cachedAnswer("www.example.com")));
  assert.ok(find("WWW.Example.COM", 28, 3) > 0);
  assert.equal(find("www.example.com", 28, 2), 0);
  assert.equal(find("www.example.com", 28, 0), 0);
  assert.equal(find("ww.example.com", 28, 3), 0);
  assert.deepEqual(read("www.example.com"), plain(cachedAnswer("www.example.com")));
  const { view, find: again } = (() => {
    const other = lab();
    other.writer.put(answer);
    return other;
  })();
  assert.deepEqual(readCached(view, again("www.example.com", 28, 3)), plain(answer));
});

test("the root, a name of 255 bytes and the largest answer find room; what is larger does not", () => {
  const { writer, read } = lab();
  const longest = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;
  const bytes = Uint8Array.from({ length: CACHED_BYTES_MAX }, (_, index) => index % 251);
  const places = Array.from({ length: 4_000 }, (_, index) => index * 16);
  for (const name of [".", longest]) {
    const answer = cachedAnswer(name, { bytes, pointers: places, ttls: places });
    assert.ok(writer.put(answer));
    assert.deepEqual(read(name), plain(answer));
  }
  assert.ok(!writer.put(cachedAnswer("x", { bytes: new Uint8Array(CACHED_BYTES_MAX + 1) })));
  assert.ok(!writer.put({ ...cachedAnswer("x"), name: Uint8Array.of(5, 97) }));
  assert.ok(!writer.put({ ...cachedAnswer("x"), name: new Uint8Array(300).fill(1) }));
  assert.equal(writer.figures().entries, 2);
});

test("what replaces an answer is found in its place, and the one before is gone", () => {
  const { writer, read, find, start, view } = lab();
  writer.put(cachedAnswer("a.test"));
  const first = find("a.test");
  const firstStart = start(first);
  const position = writer.position();
  assert.ok(!cameSince(firstStart, position));
  writer.put(cachedAnswer("a.test", { rcode: 2 }));
  assert.equal(read("a.test")?.rcode, 2);
  assert.ok(cameSince(start(find("a.test")), position));
  assert.ok(!writer.holds(first));
  assert.ok(writer.holds(find("a.test")));
  // Whoever has found it before may still read it.
  assert.ok(isIntact(view, firstStart));
  const { entries, bytes, insertions, evictions } = writer.figures();
  assert.deepEqual({ entries, bytes, insertions, evictions }, { entries: 1, bytes: 80, insertions: 2, evictions: 0 });
});

test("a word that another thread found is an entry only where one begins", () => {
  const { writer, find, view } = lab();
  writer.put(cachedAnswer("a.test"));
  const entry = find("a.test");
  // An answer may hold bytes that look like an entry, also one that is there.
  const forged = new Uint8Array(1_000);
  forged.set(view.bytes.subarray(entry * 4, entry * 4 + 96), 0);
  for (let shift = 0; shift < 16; shift++) {
    writer.put(cachedAnswer(`b${shift}.test`, { bytes: Uint8Array.from([...new Uint8Array(shift), ...forged]) }));
  }
  const held: number[] = [];
  for (let word = -4; word < MIB / 4 + 8; word++) if (writer.holds(word)) held.push(word);
  const found = Array.from({ length: 16 }, (_, shift) => find(`b${shift}.test`));
  assert.deepEqual(
    held,
    [entry, ...found].sort((left, right) => left - right),
  );
  assert.ok(!writer.holds(entry + 0.5) && !writer.holds(Number.NaN));
});

test("use, refreshing and routing are noted for what was found last, and for nothing that takes its place", () => {
  const { writer, find, view, start } = lab();
  writer.put(cachedAnswer("a.test", { routing: 7 }));
  const entry = find("a.test");
  assert.ok(isRoutedAt(view, start(entry), 7) && !isRoutedAt(view, start(entry), 8));
  noteRouting(view, start(entry), 8);
  assert.ok(isRoutedAt(view, start(entry), 8));
  for (let count = 0; count < USED_MAX + 10; count++) noteUsed(view);
  assert.equal(useCount(view), USED_MAX);
  assert.equal(noteRefreshing(view), false);
  assert.equal(noteRefreshing(view), true);
  const before = start(entry);
  writer.put(cachedAnswer("a.test", { routing: 8 }));
  const after = start(find("a.test"));
  assert.equal(useCount(view), 0);
  noteRouting(view, before, 9);
  assert.ok(!isRoutedAt(view, after, 9));
  assert.equal(noteRefreshing(view), false);
});

test("an expired answer is given again while it is kept, and no longer", () => {
  const { writer, find, view, clock } = lab();
  writer.put(cachedAnswer("a.test", { expiresSeconds: 1_010, keptUntilSeconds: 1_500 }));
  const entry = find("a.test");
  const staleUntil = (): number => view.words[entry + ENTRY.STALE_UNTIL]!;
  assert.equal(staleUntil(), 1_010);
  clock.seconds = 1_100;
  assert.ok(writer.useStale(entry, 1_130));
  assert.equal(staleUntil(), 1_130);
  clock.seconds = 1_490;
  assert.ok(writer.useStale(entry, 1_520));
  assert.equal(staleUntil(), 1_500);
  clock.seconds = 1_500;
  assert.ok(!writer.useStale(entry, 1_530));
});

test("seconds go on beyond 2^31", () => {
  const { writer, view, find, clock } = lab();
  clock.seconds = 2 ** 31 + 100;
  const times = { storedSeconds: 2 ** 31 - 5, expiresSeconds: 2 ** 31 + 90, keptUntilSeconds: 2 ** 31 + 200 };
  writer.put(cachedAnswer("a.test", times));
  assert.ok(writer.useStale(find("a.test"), clock.seconds + 30));
  assert.equal((view.words[find("a.test") + ENTRY.STALE_UNTIL]! - clock.seconds) | 0, 30);
});

test("flushing takes all, one name with all its types, or a name with those below it", () => {
  const { writer, find, shared } = lab();
  const names = ["example.com", "a.example.com", "b.a.example.com", "aexample.com", "com", "example.org"];
  const fill = (): void => {
    for (const name of names) for (const type of [1, 28]) assert.ok(writer.put(cachedAnswer(name, { type })));
  };
  const left = (): string[] => names.filter((name) => find(name) !== 0);
  fill();
  assert.equal(writer.flush({ name: cacheKey(shared, "a.example.COM"), isSubtree: false }), 2);
  assert.deepEqual(left(), ["example.com", "b.a.example.com", "aexample.com", "com", "example.org"]);
  assert.equal(writer.flush({ name: cacheKey(shared, "example.com"), isSubtree: true }), 4);
  assert.deepEqual(left(), ["aexample.com", "com", "example.org"]);
  assert.equal(writer.flush({ name: cacheKey(shared, "net"), isSubtree: true }), 0);
  assert.equal(writer.figures().entries, 6);
  fill();
  assert.equal(writer.flush({ name: cacheKey(shared, "."), isSubtree: true }), 12);
  assert.deepEqual(left(), []);
  assert.deepEqual(
    { ...writer.figures(), insertions: 0 },
    {
      entries: 0,
      bytes: 0,
      capacityBytes: MIB,
      evictions: 0,
      insertions: 0,
    },
  );
  fill();
  const position = writer.position();
  assert.equal(writer.flush(), 12);
  assert.ok(cameSince(writer.position(), position));
});

test("readers hear of another size with their next batch, and hold nothing of before", () => {
  const { shared, writer, view, start } = lab();
  writer.put(cachedAnswer("a.test"));
  const key = cacheKey(shared, "a.test");
  const before = start(findCached(view, key, 1, 0));
  for (const bytes of [4 * MIB, 2 ** 16 * 3, 64 * MIB, MIB]) {
    const position = writer.position();
    writer.resize(bytes);
    assert.ok(!isIntact(view, before));
    refreshCache(view);
    assert.ok(!isIntact(view, before));
    assert.equal(findCached(view, key, 1, 0), 0);
    assert.equal(writer.figures().capacityBytes, bytes);
    assert.ok(writer.put(cachedAnswer("a.test")));
    const now = start(findCached(view, key, 1, 0));
    assert.ok(isIntact(view, now) && cameSince(now, position));
    assert.notEqual(touchBucket(view, key.hashes[0]!, 1, 0), 0);
    assert.notEqual(touchEntry(view, key.hashes[0]!, 1, 0), 0);
  }
  writer.resize(0);
  refreshCache(view);
  assert.equal(findCached(view, key, 1, 0), 0);
  assert.ok(!writer.put(cachedAnswer("a.test")));
  assert.throws(() => writer.resize(1), RangeError);
  assert.throws(() => writer.resize(2 ** 40), RangeError);
});

test("a successor begins empty in the same size, wherever the one before it ended", () => {
  const { shared, writer, view, find, start } = lab();
  for (let index = 0; index < 100; index++) writer.put(cachedAnswer(`n${index}.test`));
  const before = start(find("n99.test"));
  const successor = createCacheWriter(shared, { nowSeconds: () => 1_000 });
  assert.ok(!isIntact(view, before));
  refreshCache(view);
  assert.equal(find("n99.test"), 0);
  assert.equal(successor.figures().capacityBytes, MIB);
  assert.ok(cameSince(successor.position(), writer.position()));
  assert.ok(successor.put(cachedAnswer("n1.test")));
  assert.ok(isIntact(view, start(find("n1.test"))));
});

test("while the cache is being made anew there is none", () => {
  const { shared, view, find } = lab();
  const writer = createCacheWriter(shared, { nowSeconds: () => 1_000 });
  writer.put(cachedAnswer("a.test"));
  refreshCache(view);
  const entry = find("a.test");
  const start = view.words[entry + ENTRY.START]!;
  assert.ok(entry > 0 && isIntact(view, start));
  view.control[31]! += 1;
  assert.ok(!isIntact(view, start));
  refreshCache(view);
  assert.equal(find("a.test"), 0);
});

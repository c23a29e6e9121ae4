import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { createPrefixMemory } from "./prefix-table.ts";
import { putRegions, type RegionPrefix, recallRegion, regionOf, regionScope } from "./regions.ts";
import { CONTROL, createSharedImage } from "./shared.ts";
import { openView } from "./view.ts";
import { collect, openImageWriter } from "./writer.ts";

function bitAt(address: Uint8Array, bit: number): number {
  return (address[bit >>> 3]! >>> (7 - (bit & 7))) & 1;
}

/** The naive way: of all prefixes that cover the address, the longest. */
function longestMatch(prefixes: readonly RegionPrefix[], address: Uint8Array): number {
  let best: RegionPrefix | undefined;
  for (const prefix of prefixes) {
    if (prefix.address.length !== address.length) continue;
    const bits = Array.from({ length: prefix.prefixLength }, (_, bit) => bit);
    if (!bits.every((bit) => bitAt(prefix.address, bit) === bitAt(address, bit))) continue;
    if (best === undefined || prefix.prefixLength > best.prefixLength) best = prefix;
  }
  return best?.region ?? 0;
}

function withoutHostBits(address: Uint8Array, prefixLength: number): Uint8Array {
  return address.map((byte, index) => byte & (0xff << Math.max(0, 8 - Math.max(0, prefixLength - index * 8))));
}

/** Bytes near each other, so that prefixes nest and touch, and both ends of the address space occur. */
const byte = fc.constantFrom(0, 1, 2, 127, 128, 254, 255);

function addressOf(bytes: number): fc.Arbitrary<Uint8Array> {
  return fc.array(byte, { minLength: bytes, maxLength: bytes }).map((values) => Uint8Array.from(values));
}

function prefixOf(bytes: number): fc.Arbitrary<RegionPrefix> {
  return fc
    .tuple(addressOf(bytes), fc.integer({ min: 0, max: bytes * 8 }), fc.integer({ min: 1, max: 5 }))
    .map(([address, prefixLength, region]) => ({
      address: withoutHostBits(address, prefixLength),
      prefixLength,
      region,
    }));
}

/** A network has one region. */
const prefixes = fc.uniqueArray(fc.oneof(prefixOf(4), prefixOf(16)), {
  maxLength: 40,
  selector: ({ address, prefixLength }) => `${address.join(".")}/${prefixLength}`,
});

/** The first and last address of a prefix, and those just outside. */
function edges({ address, prefixLength }: RegionPrefix): Uint8Array[] {
  const first = BigInt(`0x${address.toHex()}`);
  const last = first + (1n << BigInt(address.length * 8 - prefixLength)) - 1n;
  const space = 1n << BigInt(address.length * 8);
  return [first, last, (first - 1n + space) % space, (last + 1n) % space].map((number) =>
    Uint8Array.fromHex(number.toString(16).padStart(address.length * 2, "0")),
  );
}

test("the region of an address is that of the longest prefix that covers it", () => {
  const writer = openImageWriter(createSharedImage(1));
  const view = openView(writer.view.shared);
  fc.assert(
    fc.property(prefixes, fc.array(fc.oneof(addressOf(4), addressOf(16)), { maxLength: 20 }), (table, others) => {
      putRegions(writer, table);
      for (const address of [...others, ...table.flatMap(edges)]) {
        assert.equal(regionOf(view, address, 0, address.length), longestMatch(table, address), address.join("."));
      }
    }),
    { numRuns: 300 },
  );
});

/** The first and the last address with the same first bits. */
function ends(address: Uint8Array, bits: number): Uint8Array[] {
  return edges({ address: withoutHostBits(address, bits), prefixLength: bits, region: 1 }).slice(0, 2);
}

/** Whether the networks of mappings that lie within a block, or end in it, leave all of it in one region. */
function isOneRegion(table: readonly RegionPrefix[], address: Uint8Array, bits: number): boolean {
  const region = longestMatch(table, address);
  const inside = table.filter((prefix) => {
    const block = withoutHostBits(address, bits);
    return (
      prefix.address.length === address.length &&
      ends(block, bits).every((end, index) => {
        const [first, last] = [Buffer.from(prefix.address), Buffer.from(ends(prefix.address, prefix.prefixLength)[1]!)];
        return index === 0 ? Buffer.compare(last, end) >= 0 : Buffer.compare(first, end) <= 0;
      })
    );
  });
  // A region changes only where a network begins or ends.
  const [low, high] = ends(address, bits).map((end) => Buffer.from(end));
  const places = [low!, high!, ...inside.flatMap(edges)].filter((place) => {
    return Buffer.compare(Buffer.from(place), low!) >= 0 && Buffer.compare(Buffer.from(place), high!) <= 0;
  });
  return places.every((place) => longestMatch(table, place) === region);
}

test("the scope is the shortest prefix within which the region is the same", () => {
  const writer = openImageWriter(createSharedImage(1));
  const view = openView(writer.view.shared);
  fc.assert(
    fc.property(prefixes, fc.array(fc.oneof(addressOf(4), addressOf(16)), { maxLength: 6 }), (table, others) => {
      putRegions(writer, table);
      for (const address of [...others, ...table.slice(0, 6).flatMap(edges)]) {
        const bits = regionScope(view, address, 0, address.length);
        const said = `${address.join(".")}/${bits}`;
        assert.ok(isOneRegion(table, address, bits), `${said} is in several regions`);
        if (bits > 0) assert.ok(!isOneRegion(table, address, bits - 1), `${said} is longer than it has to be`);
      }
    }),
    { numRuns: 200 },
  );
});

test("/0, /32 and /128 are prefixes like any other", () => {
  const writer = openImageWriter(createSharedImage(1));
  const host = (bytes: number, last: number) => new Uint8Array(bytes).fill(last, bytes - 1);
  putRegions(writer, [
    { address: new Uint8Array(4), prefixLength: 0, region: 1 },
    { address: host(4, 9), prefixLength: 32, region: 2 },
    { address: new Uint8Array(4).fill(255), prefixLength: 32, region: 3 },
    { address: host(16, 9), prefixLength: 128, region: 4 },
  ]);
  const at = (address: Uint8Array) => regionOf(writer.view, address, 0, address.length);
  assert.deepEqual([at(host(4, 8)), at(host(4, 9)), at(host(4, 10))], [1, 2, 1]);
  assert.deepEqual([at(new Uint8Array(4)), at(new Uint8Array(4).fill(255))], [1, 3]);
  assert.deepEqual([at(host(16, 8)), at(host(16, 9)), at(host(16, 10))], [0, 4, 0]);
});

test("the address is read where it stands in a larger buffer", () => {
  const writer = openImageWriter(createSharedImage(1));
  putRegions(writer, [{ address: Uint8Array.of(10, 0, 0, 0), prefixLength: 8, region: 7 }]);
  assert.equal(regionOf(writer.view, Uint8Array.of(1, 2, 10, 3, 4, 5, 6), 2, 4), 7);
});

test("without a table there is no region, and replaced tables give their memory back", () => {
  const writer = openImageWriter(createSharedImage(1));
  const many = Array.from({ length: 5_000 }, (_, index) => ({
    address: Uint8Array.of(10, index >>> 8, index & 0xff, 0),
    prefixLength: 24,
    region: (index % 7) + 1,
  }));
  for (let round = 0; round < 50; round++) {
    putRegions(writer, many);
    while (collect(writer));
  }
  putRegions(writer, []);
  while (collect(writer));
  assert.equal(regionOf(writer.view, many[0]!.address, 0, 4), 0);
  auditArena(writer);
  assert.equal(writer.view.limit, 65_536, "the arena never grew");
});

test("what is remembered is what is found, whatever tables come in turn and wherever they lie", () => {
  const writer = openImageWriter(createSharedImage(1));
  const { view } = writer;
  const memory = createPrefixMemory();
  const blocks = new Set<number>();
  let rounds = 0;
  // Ends only after a table came to lie where another has lain, which is what a memory could be misled by.
  for (; rounds < 1_000 && (rounds < 50 || blocks.size === rounds); rounds++) {
    const half = Uint8Array.of(rounds % 2 === 0 ? 0 : 128, 0, 0, 0);
    putRegions(writer, [{ address: half, prefixLength: 1, region: rounds + 1 }]);
    blocks.add(view.control[CONTROL.REGIONS]!);
    for (const address of [Uint8Array.of(0, 0, 0, 0), Uint8Array.of(200, 1, 2, 3), Uint8Array.of(10, 0, 0, 1)]) {
      const found = regionOf(view, address, 0, 4);
      assert.equal(recallRegion(memory, view, address, 0, 4), found, address.join("."));
      assert.equal(recallRegion(memory, view, address, 0, 4), found, address.join("."));
    }
    while (collect(writer));
  }
  assert.ok(blocks.size < rounds, "no table came to lie where another had lain");
  putRegions(writer, []);
  assert.equal(recallRegion(memory, view, Uint8Array.of(10, 0, 0, 1), 0, 4), 0);
});

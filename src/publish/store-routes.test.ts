import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { auditArena } from "../../tests/image/audit.ts";
import { addressOf } from "../../tests/support/selection-lab.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { openLab, queryBytes } from "../../tests/support/zone-lab.ts";
import { FLAG } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { upstreamText } from "../dns/upstream.ts";
import { CONTROL, FORWARDING, ROUTE } from "../image/shared.ts";
import { collect, namedRoutes, openImageWriter } from "../image/writer.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import { openRoutePublisher, type PublishedRoute, routeNumber } from "./store-routes.ts";

async function openWorld(t: TestContext) {
  const temporary = await temporaryStore();
  const { store } = temporary;
  const lab = openLab([], { answerer: { forwards: true } });
  const control = new Int32Array(lab.shared.control);
  const world = {
    store,
    lab,
    /** Of the publisher that was opened last. */
    writer: lab.writer,
    faults: [] as string[],
    told: [] as (readonly PublishedRoute[])[],
    /** What the image named when routes were told. */
    namedThen: [] as (readonly number[])[],
    word: (word: number) => control[word] ?? 0,
    image: () => Object.fromEntries(namedRoutes(world.writer).map(({ name, route }) => [nameToText(name), route])),
    put: (domain: string, ...upstreams: string[]) =>
      store.write((tx) => void tx.put("forwarder", { id: `fwd_${domain}`, domain, upstreams })),
    stub: (domain: string, ...hints: string[]) =>
      store.write((tx) => void tx.put("stub-zone", { id: `stb_${domain}`, domain, hints })),
    drop: (domain: string) => store.write((tx) => void tx.delete("forwarder", [domain])),
    forward: (settings: Partial<ConfigSettings<"default-forwarder">>) =>
      store.write((tx) => void tx.put("config", { name: "default-forwarder", settings })),
    harden: (settings: Partial<ConfigSettings<"hardening">>) =>
      store.write((tx) => void tx.put("config", { name: "hardening", settings })),
    open: (writer = lab.writer) => {
      world.writer = writer;
      const publisher = openRoutePublisher({
        store,
        writer,
        log: (_, message) => world.faults.push(message),
        onRoutes: (routes) => {
          world.told.push(routes);
          world.namedThen.push([...Object.values(world.image()), control[CONTROL.DEFAULT_ROUTE] ?? 0]);
        },
        onChanged: () => {},
      });
      const end = store.onChange(publisher.hear);
      publisher.start();
      return { ...publisher, end };
    },
  };
  t.after(() => temporary[Symbol.asyncDispose]());
  return world;
}

test("a forwarder routes its domain when its write is acknowledged, and no more when it is gone", async (t) => {
  const world = await openWorld(t);
  world.open();
  assert.deepEqual([world.image(), world.word(CONTROL.DEFAULT_ROUTE)], [{}, ROUTE.NONE]);
  await world.put("far.", "192.0.2.1", "[2001:db8::1]:5353");
  const [told] = world.told.slice(-1);
  assert.deepEqual(
    told?.map(({ kind, upstreams, hardening }) => [kind, upstreams.map(upstreamText), hardening]),
    [["forwarder", ["192.0.2.1:53", "[2001:db8::1]:5353"], undefined]],
  );
  const number = told?.[0]?.number ?? 0;
  assert.ok(number >= ROUTE.FIRST && number < 2 ** 31);
  assert.deepEqual(world.image(), { "far.": number });
  assert.equal(world.lab.lack("www.far. A", { flags: FLAG.RD }), `${number} www.far. A 0`);
  await world.drop("far.");
  assert.deepEqual([world.image(), world.told.at(-1)], [{}, []]);
  assert.deepEqual(world.lab.ask("www.far. A"), ["REFUSED ede=20"]);
  while (collect(world.lab.writer));
  auditArena(world.lab.writer);
  assert.deepEqual(world.faults, []);
});

test("who resolves is told of a route before the image names it", async (t) => {
  const world = await openWorld(t);
  world.open();
  await world.put("a.", "192.0.2.1");
  await world.put("a.", "192.0.2.2");
  await world.stub("b.", "192.0.2.3");
  await world.forward({ enabled: true, upstreams: ["192.0.2.4"] });
  assert.equal(world.told.length, 5, "once at the start and once a change");
  for (const [index, routes] of world.told.entries()) {
    const before = world.told.slice(0, index).flat();
    const isNew = routes.filter(({ number }) => !before.some((known) => known.number === number));
    for (const { number } of isNew) assert.ok(!world.namedThen[index]?.includes(number));
  }
});

test("a route's number changes with all that is configured of it, and with nothing else", async (t) => {
  const world = await openWorld(t);
  world.open();
  const numberOf = async (change: () => Promise<void>, domain = "far.") => {
    await change();
    return world.image()[domain] ?? 0;
  };
  const first = await numberOf(() => world.put("far.", "192.0.2.1", "192.0.2.2"));
  const routing = world.word(CONTROL.ROUTING);
  const sameAgain = () =>
    world.store.write((tx) => {
      const body = { id: "fwd_far.", domain: "far.", upstreams: ["192.0.2.1:53", "192.0.2.2"], comment: "x" };
      tx.put("forwarder", body);
    });
  assert.equal(await numberOf(sameAgain), first);
  assert.equal(world.word(CONTROL.ROUTING), routing, "names are routed as before");
  const swapped = await numberOf(() => world.put("far.", "192.0.2.2", "192.0.2.1"));
  const other = await numberOf(() => world.put("other.", "192.0.2.1", "192.0.2.2"), "other.");
  await world.drop("far.");
  const stub = await numberOf(() => world.stub("far.", "192.0.2.1", "192.0.2.2"));
  assert.equal(new Set([first, swapped, other, stub]).size, 4);
  assert.notEqual(world.word(CONTROL.ROUTING), routing);
});

test("whom the routes are for: private networks by default, then as it is configured, and never whom a text of no network means", async (t) => {
  const world = await openWorld(t);
  world.open();
  await world.put("far.", "192.0.2.1");
  const isFor = (client: string) => {
    const query = queryBytes("www.far. A", { flags: FLAG.RD });
    return world.lab.sendOrLack(query, { client: addressOf(client) }) === "taken";
  };
  const offer = (...allow_networks: string[]) =>
    world.store.write((tx) => void tx.put("config", { name: "recursion", settings: { allow_networks } }));
  assert.deepEqual(["10.0.0.1", "fd00::1", "8.8.8.8", "2606::1"].map(isFor), [true, true, false, false]);
  await offer("8.8.8.0/24", "2606::/16");
  assert.deepEqual(["10.0.0.1", "fd00::1", "8.8.8.8", "2606::1"].map(isFor), [false, false, true, true]);
  await offer("10.0.0.0/8", "everybody", "8.8.8.8/0");
  assert.deepEqual(["10.0.0.1", "8.8.8.8"].map(isFor), [true, false]);
  await offer();
  assert.deepEqual(["10.0.0.1", "127.0.0.1", "::1"].map(isFor), [false, false, false]);
  await world.store.write((tx) => void tx.delete("config", ["recursion"]));
  assert.deepEqual(["10.0.0.1", "8.8.8.8"].map(isFor), [true, false]);
  await offer("8.8.8.8");
  // Another control thread takes the image over: there is no moment at which it is for others.
  const writer = openImageWriter(world.lab.shared);
  assert.deepEqual(["10.0.0.1", "8.8.8.8"].map(isFor), [false, true]);
  world.open(writer);
  assert.deepEqual(["10.0.0.1", "8.8.8.8"].map(isFor), [false, true]);
  while (collect(writer));
  auditArena(writer);
  assert.deepEqual(world.faults, []);
});

test("the default forwarder has a route while it is enabled, which its hardening changes", async (t) => {
  const world = await openWorld(t);
  world.open();
  await world.forward({ enabled: false, upstreams: ["192.0.2.1"] });
  assert.equal(world.word(CONTROL.DEFAULT_ROUTE), ROUTE.NONE);
  await world.forward({ enabled: true, upstreams: ["192.0.2.1"] });
  const first = world.word(CONTROL.DEFAULT_ROUTE);
  assert.equal(world.lab.lack("www.far. A", { flags: FLAG.RD }), `${first} www.far. A 0`);
  assert.equal(world.told.at(-1)?.[0]?.hardening?.max_udp_size, 1232);
  await world.harden({ refuse_any: true });
  assert.notEqual(world.word(CONTROL.DEFAULT_ROUTE), first);
  assert.equal(world.word(CONTROL.FORWARDING), FORWARDING.REFUSE_ANY);
  await world.harden({});
  assert.deepEqual([world.word(CONTROL.DEFAULT_ROUTE), world.word(CONTROL.FORWARDING)], [first, 0]);
  await world.forward({ enabled: false, upstreams: ["192.0.2.1"] });
  await world.harden({ refuse_any: true });
  assert.deepEqual([world.word(CONTROL.DEFAULT_ROUTE), world.word(CONTROL.FORWARDING)], [ROUTE.NONE, 0]);
});

test("a successor publishes the same numbers, and takes away what is stored no more", async (t) => {
  const world = await openWorld(t);
  const before = world.open();
  await world.put("a.", "192.0.2.1");
  await world.put("b.", "192.0.2.1");
  await world.put("c.", "192.0.2.1");
  await world.stub("sub.a.", "192.0.2.1");
  await world.forward({ enabled: true, upstreams: ["192.0.2.4"] });
  const image = world.image();
  const defaultRoute = world.word(CONTROL.DEFAULT_ROUTE);
  before.end();
  const unchanged = openImageWriter(world.lab.shared);
  const routing = world.word(CONTROL.ROUTING);
  world.open(unchanged).end();
  assert.deepEqual([world.image(), world.word(CONTROL.DEFAULT_ROUTE)], [image, defaultRoute]);
  assert.equal(world.word(CONTROL.ROUTING), routing, "answers of the cache hold on");
  await world.drop("b.");
  await world.put("c.", "192.0.2.2");
  await world.put("d.", "192.0.2.1");
  await world.forward({ enabled: false });
  world.open(openImageWriter(world.lab.shared));
  const { "a.": a, "sub.a.": sub, "c.": c, ...rest } = world.image();
  assert.deepEqual([a, sub], [image["a."], image["sub.a."]]);
  assert.notEqual(c, image["c."]);
  assert.deepEqual(Object.keys(rest), ["d."]);
  assert.equal(world.word(CONTROL.DEFAULT_ROUTE), ROUTE.NONE);
  assert.deepEqual(world.faults, []);
});

test("of a forwarder and a stub zone that a merge left at one domain the later one holds", async (t) => {
  const world = await openWorld(t);
  world.open();
  await world.put("far.", "192.0.2.1");
  const forwarder = world.image()["far."];
  await world.stub("far.", "192.0.2.1");
  assert.deepEqual(
    world.told.at(-1)?.map(({ kind }) => kind),
    ["stub"],
  );
  await world.put("far.", "192.0.2.2");
  await world.put("far.", "192.0.2.1");
  assert.equal(world.image()["far."], forwarder);
  await world.drop("far.");
  assert.deepEqual(
    world.told.at(-1)?.map(({ kind }) => kind),
    ["stub"],
  );
});

test("two routes never have one number", () => {
  const route = { kind: "forwarder", domain: Uint8Array.of(1, 97, 0), upstreams: [], hardening: undefined } as const;
  const first = routeNumber(route, () => false);
  const second = routeNumber(route, (number) => number === first);
  assert.notEqual(second, first);
  assert.equal(
    routeNumber(route, (number) => number === first),
    second,
  );
});

test("whatever is written in whatever order, the image is as a fresh one over the same store", async (t) => {
  const world = await openWorld(t);
  world.open();
  const domain = fc.constantFrom("a.", "b.a.", "c.b.a.", "d.");
  const upstream = fc.constantFrom("192.0.2.1", "192.0.2.2:5353", "tls://dns.example");
  const edit = fc.oneof(
    fc.record({ kind: fc.constantFrom("put", "stub"), domain, upstream }),
    fc.record({ kind: fc.constantFrom("drop", "drop-stub"), domain, upstream }),
    fc.record({ kind: fc.constantFrom("enable", "disable"), domain, upstream }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 12 }), async (edits) => {
      for (const { kind, domain: name, upstream: place } of edits) {
        await world.store.write((tx) => {
          if (kind === "put") tx.put("forwarder", { id: `fwd_${name}`, domain: name, upstreams: [place] });
          if (kind === "stub") tx.put("stub-zone", { id: `stb_${name}`, domain: name, hints: ["192.0.2.9", place] });
          if (kind === "drop") tx.delete("forwarder", [name]);
          if (kind === "drop-stub") tx.delete("stub-zone", [name]);
          const settings = { enabled: kind === "enable", upstreams: [place] };
          if (kind.endsWith("able")) tx.put("config", { name: "default-forwarder", settings });
        });
      }
      const fresh = openLab([]);
      const publisher = openRoutePublisher({
        store: world.store,
        writer: fresh.writer,
        log: assert.fail,
        onRoutes: () => {},
        onChanged: () => {},
      });
      publisher.start();
      const routes = namedRoutes(fresh.writer).map(({ name, route }) => [nameToText(name), route]);
      assert.deepEqual(world.image(), Object.fromEntries(routes));
      assert.equal(world.word(CONTROL.DEFAULT_ROUTE), new Int32Array(fresh.shared.control)[CONTROL.DEFAULT_ROUTE]);
      const told = world.told.at(-1)?.map(({ number }) => number) ?? [];
      const named = [...Object.values(world.image()), world.word(CONTROL.DEFAULT_ROUTE)].filter((number) => number > 0);
      assert.deepEqual(told.toSorted(), named.toSorted());
    }),
    { numRuns: 60 },
  );
  while (collect(world.lab.writer));
  auditArena(world.lab.writer);
  assert.deepEqual(world.faults, []);
});

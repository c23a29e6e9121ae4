import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  createResolverLab,
  HARDENING,
  type ResolverLab,
  type RouteText,
  type Script,
} from "../../tests/support/resolver-lab.ts";
import { wireName } from "../../tests/support/scripted-replies.ts";
import { EDE, RCODE } from "../dns/codes.ts";
import { QUESTION_FLAG } from "../image/cache.ts";
import { IN_FLIGHT_MAX, WAITING_EACH_MAX, WAITING_MAX } from "./resolver-limits.ts";
import type { Resolved } from "./resolver-types.ts";
import type { Hardening } from "./settings.ts";

const SERVER = "192.0.2.53";
const DEFAULT: RouteText = { number: 16, kind: "default", domain: ".", upstreams: [SERVER], hardening: HARDENING };
const STORED: Resolved = { kind: "stored" };
const SOA = "test. 900 SOA ns.test. host.test. 1 2 3 4 300";
const NO_DATA: Script = () => ({ rcode: RCODE.NXDOMAIN, authority: [SOA] });

function lab(script: Script = NO_DATA, hardening: Partial<Hardening> = {}, change = {}): ResolverLab {
  const made = createResolverLab();
  made.servers.set(SERVER, script);
  made.setRoutes([{ ...DEFAULT, hardening: { ...HARDENING, ...hardening } }], change);
  return made;
}

const address: Script = (name) => ({ answer: [`${name} 60 A 192.0.2.1`] });

describe("a question", () => {
  test("is asked with recursion, stored, and told", async () => {
    const made = lab(address);
    assert.deepEqual(await made.resolve("a.test."), STORED);
    assert.deepEqual(made.asked, [`${SERVER} a.test. A rd`]);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.1");
    const entry = made.entry("a.test.");
    assert.equal(entry?.route, 16);
    assert.equal(entry?.expiresSeconds, 1_800_000_060);
    assert.equal(entry?.keptUntilSeconds, 1_800_000_060);
    assert.equal(made.resolver.figures().resolved, 1);
    assert.equal(made.resolver.figures().inFlight, 0);
  });

  test("with other flags is another one", async () => {
    const made = lab(address);
    await Promise.all([
      made.resolve("a.test."),
      made.resolve("a.test.", "A", QUESTION_FLAG.DNSSEC_OK),
      made.resolve("a.test.", "AAAA"),
    ]);
    assert.equal(made.asked.length, 3);
    assert.equal(made.text("a.test.", "A", QUESTION_FLAG.DNSSEC_OK), "RCODE 0; a.test. 60 A 192.0.2.1");
  });

  test("is asked once, however many wait, and none is told before resolve returns", async () => {
    const made = lab(address);
    const told: Resolved[] = [];
    const asked = { name: wireName("a.test."), type: 1, flags: 0, route: 16 };
    for (let index = 0; index < 1_000; index++) made.resolver.resolve(asked, (resolved) => void told.push(resolved));
    assert.equal(told.length, 0);
    assert.equal(made.resolver.figures().waiting, 1_000);
    await made.pass(0);
    assert.equal(told.length, 1_000);
    assert.deepEqual(made.asked.length, 1);
    assert.equal(made.resolver.figures().waiting, 0);
  });

  test("by a route that nobody knows fails, and so does one after the end", async () => {
    const made = lab(address);
    assert.deepEqual(await made.resolve("a.test.", "A", 0, 4711), STORED);
    assert.equal(made.text("a.test."), `RCODE 2 EDE ${EDE.OTHER}`);
    made.servers.set(SERVER, () => "timeout");
    const waiting = made.resolve("b.test.");
    made.resolver.close();
    assert.deepEqual(await waiting, { kind: "failed", extendedError: EDE.OTHER });
    assert.deepEqual(await made.resolve("c.test."), { kind: "failed", extendedError: EDE.OTHER });
    assert.deepEqual(made.closedPools, [16]);
    await made.pass(60_000);
    assert.equal(made.find("b.test."), 0);
  });
});

describe("chains", () => {
  test("are stored up to the first name that is routed elsewhere", async () => {
    const text = { answer: ["a.test. 60 CNAME b.own.", "b.own. 60 A 203.0.113.1"] };
    for (const how of ["own", "blocked", "route"] as const) {
      const made = lab(() => text);
      if (how === "route") made.setRoutes([DEFAULT, { ...DEFAULT, number: 17, kind: "forwarder", domain: "own." }]);
      else made[how].push("own.");
      await made.resolve("a.test.");
      assert.equal(made.text("a.test."), "RCODE 0 open; a.test. 60 CNAME b.own.", how);
      assert.equal(made.entry("a.test.")?.targets.length, 1);
    }
  });

  test("that loop are no answer", async () => {
    const made = lab(() => ({ answer: ["a.test. 60 CNAME b.test.", "b.test. 60 CNAME a.test."] }));
    await made.resolve("a.test.");
    assert.equal(made.text("a.test."), `RCODE 2 EDE ${EDE.OTHER}`);
    assert.equal(made.entry("a.test.")?.expiresSeconds, 1_800_000_001);
    assert.equal(made.resolver.figures().failed, 1);
  });
});

describe("hardening", () => {
  const liar: Script = (name) => ({ answer: [`${name} 60 A 10.0.0.1`, "bank.test. 60 A 203.0.113.1"] });

  test("leaves out what was not asked for, and without it the client gets it", async () => {
    const with_ = lab(liar);
    await with_.resolve("a.test.");
    assert.equal(with_.text("a.test."), "RCODE 0; a.test. 60 A 10.0.0.1");
    assert.equal(with_.resolver.figures().scrubbedRecords, 1);
    assert.equal(with_.find("bank.test."), 0);
    const without = lab(liar, { bailiwick: false });
    await without.resolve("a.test.");
    assert.equal(without.text("a.test."), "RCODE 0; a.test. 60 A 10.0.0.1; bank.test. 60 A 203.0.113.1");
    assert.equal(without.find("bank.test."), 0);
  });

  test("keeps private addresses from public names, and without it they pass", async () => {
    const with_ = lab(liar, { rebindingProtection: true, rebindingExceptions: [wireName("corp.test.")] });
    await with_.resolve("a.test.");
    assert.equal(with_.text("a.test."), `RCODE 0 EDE ${EDE.BLOCKED}`);
    assert.equal(with_.resolver.figures().rebindingRecords, 1);
    await with_.resolve("a.corp.test.");
    assert.equal(with_.text("a.corp.test."), "RCODE 0; a.corp.test. 60 A 10.0.0.1");
  });

  test("bounds TTLs, before the cache's own bounds", async () => {
    for (const [minTtl, maxTtl, expected] of [
      [undefined, undefined, 50],
      [70, 80, 70],
      [undefined, 40, 40],
      [0, 86_400, 60],
    ] as const) {
      const made = lab(address, { minTtl, maxTtl }, { minTtl: 10, maxTtl: 50 });
      await made.resolve("a.test.");
      assert.equal(made.text("a.test."), `RCODE 0; a.test. ${expected} A 192.0.2.1`);
    }
  });
});

describe("how long answers hold", () => {
  test("is not at all where the TTL is 0, the answer negative without SOA, or the cache off", async () => {
    const zero = lab((name) => ({ answer: [`${name} 0 A 192.0.2.1`] }));
    await zero.resolve("a.test.");
    assert.equal(zero.entry("a.test.")?.expiresSeconds, 1_800_000_000);
    const bare = lab(() => ({ rcode: RCODE.NXDOMAIN }));
    await bare.resolve("a.test.");
    assert.equal(bare.entry("a.test.")?.expiresSeconds, 1_800_000_000);
    const off = lab(address, { serveStaleSeconds: 100 }, { isEnabled: false });
    await off.resolve("a.test.");
    assert.equal(off.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.1");
    assert.equal(off.entry("a.test.")?.expiresSeconds, 1_800_000_000);
    assert.equal(off.entry("a.test.")?.keptUntilSeconds, 1_800_000_000);
  });

  test("is as the SOA says for negative answers", async () => {
    const made = lab(NO_DATA, {}, { maxNegativeTtl: 200 });
    await made.resolve("a.test.");
    assert.equal(made.text("a.test."), "RCODE 3 | test. 200 SOA ns.test. host.test. 1 2 3 4 300");
    assert.equal(made.entry("a.test.")?.expiresSeconds, 1_800_000_200);
  });

  test("ends with a flush, also for what is on its way", async () => {
    const made = lab(address);
    await made.resolve("a.test.");
    await made.resolve("b.a.test.");
    await made.resolve("c.test.");
    made.servers.set(SERVER, (name) => ({ afterMs: 100, say: { answer: [`${name} 60 A 192.0.2.1`] } }));
    const waiting = made.resolve("d.a.test.");
    assert.equal(made.resolver.flush(wireName("a.test."), true), 2);
    await made.pass(100);
    assert.deepEqual(await waiting, STORED);
    assert.equal(made.entry("d.a.test.")?.expiresSeconds, 1_800_000_000);
    assert.notEqual(made.find("c.test."), 0);
    assert.equal(made.resolver.flush(wireName("a.test."), false), 0);
    assert.equal(made.resolver.flush(undefined, true), 2);
    assert.equal(made.resolver.figures().flushed, 4);
    assert.equal(made.find("c.test."), 0);
  });
});

describe("failures", () => {
  test("are answered for a second without asking again", async () => {
    const faults = [
      ["timeout", EDE.NO_REACHABLE_AUTHORITY],
      ["garbage", EDE.NO_REACHABLE_AUTHORITY],
      ["network", EDE.NETWORK_ERROR],
      ["tls", EDE.NETWORK_ERROR],
      ["loop", EDE.OTHER],
      ["closed", EDE.OTHER],
    ] as const;
    for (const [fault, extendedError] of faults) {
      const made = lab(() => fault);
      const resolved = made.resolve("a.test.");
      await made.pass(5_000);
      assert.deepEqual(await resolved, STORED);
      assert.equal(made.text("a.test."), `RCODE 2 EDE ${extendedError}`, fault);
      const entry = made.entry("a.test.")!;
      assert.equal(entry.expiresSeconds - entry.storedSeconds, 1);
      assert.equal(entry.keptUntilSeconds, entry.expiresSeconds);
      assert.equal(made.resolver.figures().loops, fault === "loop" ? 1 : 0);
    }
  });

  test("are rcodes, lame upstreams and answers about other names, of which the next upstream may know better", async () => {
    const useless = [
      { rcode: RCODE.SERVFAIL },
      { rcode: RCODE.REFUSED },
      { authority: ["test. 60 NS ns.test."] },
      { answer: ["victim.test. 60 A 203.0.113.1"] },
    ];
    for (const text of useless) {
      const made = lab(() => text);
      await made.resolve("a.test.");
      assert.match(made.text("a.test.") ?? "", /^RCODE 2 EDE \d+$/);
      assert.equal(made.find("victim.test."), 0);
      made.servers.set("192.0.2.54", address);
      made.setRoutes([{ ...DEFAULT, number: 17, upstreams: [SERVER, "192.0.2.54"] }]);
      await made.resolve("b.test.");
      assert.equal(made.text("b.test."), "RCODE 0; b.test. 60 A 192.0.2.1");
    }
  });

  test("of an answer that is too large", async () => {
    const made = lab((name) => ({
      answer: Array.from({ length: 260 }, (_, index) => `${name} 60 TXT "${index}${"x".repeat(250)}"`),
    }));
    await made.resolve("a.test.", "TXT");
    assert.equal(made.text("a.test.", "TXT"), `RCODE 2 EDE ${EDE.OTHER}`);
  });
});

describe("too many", () => {
  test("questions in flight fail at once, and the others within the deadline", async () => {
    const made = lab(() => "timeout");
    const failures: Resolved[] = [];
    let stored = 0;
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 100_000; index++) {
      const asked = { name: wireName(`n${index}.test.`), type: 1, flags: 0, route: 16 };
      made.resolver.resolve(asked, (resolved) => {
        if (resolved.kind === "failed") failures.push(resolved);
        else stored++;
      });
    }
    const usedMiB = (process.memoryUsage().heapUsed - before) / 2 ** 20;
    assert.ok(usedMiB < 200, `${usedMiB} MiB`);
    assert.equal(made.resolver.figures().inFlight, IN_FLIGHT_MAX);
    await made.pass(0);
    assert.equal(failures.length, 100_000 - IN_FLIGHT_MAX);
    assert.deepEqual(failures[0], { kind: "failed", extendedError: EDE.OTHER });
    assert.equal(made.resolver.figures().refusedFull, 100_000 - IN_FLIGHT_MAX);
    await made.pass(4_500);
    assert.equal(failures.length, 100_000 - IN_FLIGHT_MAX);
    assert.equal(stored, IN_FLIGHT_MAX);
    assert.equal(made.resolver.figures().inFlight, 0);
    assert.equal(made.text(`n${IN_FLIGHT_MAX - 1}.test.`), `RCODE 2 EDE ${EDE.NO_REACHABLE_AUTHORITY}`);
  });

  test("askers of one question, and of all, are told so", async () => {
    const made = lab(() => "timeout");
    let failed = 0;
    const ask = (name: Uint8Array): void => {
      made.resolver.resolve({ name, type: 1, flags: 0, route: 16 }, ({ kind }) => {
        if (kind === "failed") failed++;
      });
    };
    for (let index = 0; index <= WAITING_EACH_MAX; index++) ask(wireName("a.test."));
    await made.pass(0);
    assert.equal(failed, 1);
    for (let index = WAITING_EACH_MAX; index < WAITING_MAX; index++) ask(wireName(`n${index % 10}.test.`));
    await made.pass(0);
    assert.equal(failed, 1);
    assert.equal(made.resolver.figures().waiting, WAITING_MAX);
    ask(wireName("b.test."));
    await made.pass(0);
    assert.equal(failed, 2);
    await made.pass(5_000);
    assert.equal(made.resolver.figures().waiting, 0);
    assert.equal(failed, 2);
  });
});

describe("stale answers", () => {
  const STALE = { serveStaleSeconds: 3_600 };

  test("step in where the upstreams fail, for thirty seconds before they are asked again", async () => {
    const made = lab(address, STALE);
    await made.resolve("a.test.");
    assert.equal(made.entry("a.test.")?.keptUntilSeconds, 1_800_000_060 + 3_600);
    await made.pass(61_000);
    made.servers.set(SERVER, () => "network");
    assert.deepEqual(await made.resolve("a.test."), STORED);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.1");
    assert.equal(made.staleUntil("a.test."), 1_800_000_061 + 30);
    assert.equal(made.resolver.figures().failed, 1);
    await made.pass(31_000);
    await made.resolve("a.test.");
    assert.equal(made.staleUntil("a.test."), 1_800_000_092 + 30);
    await made.pass(4_000_000);
    await made.resolve("a.test.");
    assert.equal(made.text("a.test."), `RCODE 2 EDE ${EDE.NETWORK_ERROR}`);
  });

  test("of another route are none", async () => {
    const made = lab(address, STALE);
    await made.resolve("a.test.");
    await made.pass(61_000);
    made.servers.set(SERVER, () => "network");
    made.setRoutes([{ ...DEFAULT, number: 17, hardening: { ...HARDENING, ...STALE } }]);
    await made.resolve("a.test.");
    assert.equal(made.text("a.test."), `RCODE 2 EDE ${EDE.NETWORK_ERROR}`);
  });

  test("are not given without the switch", async () => {
    const made = lab(address);
    await made.resolve("a.test.");
    await made.pass(61_000);
    made.servers.set(SERVER, () => "network");
    await made.resolve("a.test.");
    assert.equal(made.text("a.test."), `RCODE 2 EDE ${EDE.NETWORK_ERROR}`);
  });

  test("step in where there are too many questions to ask another", async () => {
    const made = lab(address, STALE);
    await made.resolve("a.test.");
    await made.pass(61_000);
    made.servers.set(SERVER, () => "timeout");
    for (let index = 0; index < IN_FLIGHT_MAX; index++) void made.resolve(`n${index}.test.`);
    assert.deepEqual(await made.resolve("a.test."), STORED);
    assert.equal(made.staleUntil("a.test."), 1_800_000_061 + 30);
    assert.equal(made.resolver.figures().refusedFull, 1);
    made.resolver.close();
  });

  test("are given after 1.8 seconds, while the question is resolved all the same", async () => {
    const made = lab(address, STALE);
    await made.resolve("a.test.");
    await made.pass(61_000);
    made.servers.set(SERVER, (name) => ({ afterMs: 3_000, say: { answer: [`${name} 70 A 192.0.2.2`] } }));
    const told: Resolved[] = [];
    void made.resolve("a.test.").then((resolved) => told.push(resolved));
    await made.pass(1_799);
    assert.equal(told.length, 0);
    await made.pass(1);
    assert.deepEqual(told, [STORED]);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.1");
    await made.pass(1_200);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 70 A 192.0.2.2");
    assert.equal(made.resolver.figures().inFlight, 0);
  });
});

describe("refreshing", () => {
  test("fetches the entry anew, and leaves it where that fails", async () => {
    let count = 0;
    const made = lab((name) => ({ answer: [`${name} 60 A 192.0.2.${++count}`] }));
    await made.resolve("a.test.");
    await made.pass(55_000);
    made.resolver.refresh(made.find("a.test."));
    await made.pass(0);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.2");
    assert.equal(made.entry("a.test.")?.expiresSeconds, 1_800_000_115);
    made.servers.set(SERVER, () => "network");
    made.resolver.refresh(made.find("a.test."));
    await made.pass(0);
    assert.equal(made.text("a.test."), "RCODE 0; a.test. 60 A 192.0.2.2");
    assert.equal(made.resolver.figures().failed, 1);
    assert.equal(made.asked.length, 3);
  });

  test("of a word at which there is no entry does nothing", async () => {
    const made = lab(address);
    await made.resolve("a.test.");
    const word = made.find("a.test.");
    for (const wrong of [0, -1, word + 1, word + 4, 2 ** 30, 1.5]) made.resolver.refresh(wrong);
    made.resolver.flush(undefined, true);
    made.resolver.refresh(word);
    await made.pass(0);
    assert.equal(made.asked.length, 1);
  });
});

describe("settings", () => {
  test("keep the servers of routes that stay, and end the others once they have answered", async () => {
    const made = lab((name) => ({ afterMs: 100, say: { answer: [`${name} 60 A 192.0.2.1`] } }));
    const waiting = made.resolve("a.test.");
    made.setRoutes([{ ...DEFAULT, number: 17 }]);
    assert.deepEqual(made.closedPools, []);
    await made.pass(100);
    assert.deepEqual(await waiting, STORED);
    assert.deepEqual(made.closedPools, [16]);
    assert.equal(made.entry("a.test.")?.route, 16);
    made.setRoutes([
      { ...DEFAULT, number: 17 },
      { ...DEFAULT, number: 18, kind: "forwarder", domain: "corp." },
    ]);
    assert.deepEqual(made.closedPools, [16]);
  });

  test("give the cache its size, and empty it where it is turned off", async () => {
    const made = lab(address, {}, { maxBytes: 2 ** 23 + 5 });
    assert.equal(made.resolver.figures().cache.capacityBytes, 2 ** 23);
    await made.resolve("a.test.");
    made.setRoutes([DEFAULT], { maxBytes: 2 ** 23 });
    assert.notEqual(made.find("a.test."), 0);
    made.setRoutes([DEFAULT], { isEnabled: false });
    assert.equal(made.find("a.test."), 0);
    made.setRoutes([DEFAULT], { maxBytes: 2 ** 20 });
    assert.equal(made.resolver.figures().cache.capacityBytes, 2 ** 20, "no more than it may have");
  });
});

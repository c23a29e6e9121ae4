import assert from "node:assert/strict";
import { test } from "node:test";
import { type LabOptions, negative, openLab, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { EDE, FLAG, RCODE } from "../dns/codes.ts";
import { COUNTER, sumCounter, TRANSPORT } from "../image/counters.ts";
import { ROUTE } from "../image/shared.ts";

const RECORDS = `
www A 192.0.2.1
out CNAME www.outside.net.
out2 CNAME out
wild CNAME x.cut
cut NS ns.elsewhere.net.
alias 50 ALIAS www.outside.net.
to-alias CNAME alias
below-cut ALIAS x.cut
loop CNAME loop.outside.net.
`;
const ROUTES = { default: 99, corp: 50 } as const;
const RD = { flags: FLAG.RD };
const NOW = 1_800_000_000;

function forwardingLab(options: LabOptions["answerer"] = {}): ZoneLab {
  const lab = openLab([zone("example.test.", RECORDS)], { nowSeconds: NOW, answerer: { forwards: true, ...options } });
  lab.route(".", ROUTES.default);
  lab.route("corp.", ROUTES.corp);
  return lab;
}

const WWW = {
  route: ROUTES.default,
  answers: "www.outside.net. 300 A 198.51.100.1\nwww.outside.net. 300 A 198.51.100.2",
};
const CHAIN = {
  route: ROUTES.default,
  answers: "a.far. 300 CNAME b.far.\nb.far. 200 CNAME c.far.\nc.far. 100 A 198.51.100.3",
};
const NONE = {
  route: ROUTES.default,
  rcode: RCODE.NXDOMAIN,
  authorities: "far. 60 SOA ns.far. host.far. 1 2 3 4 60",
};

test("a question is answered from the cache, and its TTLs count down", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", WWW);
  const answer = (ttl: number) => [
    "NOERROR rd ra",
    `answer www.outside.net. ${ttl} IN A 198.51.100.1`,
    `answer www.outside.net. ${ttl} IN A 198.51.100.2`,
  ];
  assert.deepEqual(lab.ask("www.outside.net. A", RD), answer(300));
  lab.clock(NOW + 120);
  assert.deepEqual(lab.ask("www.outside.net. A", RD), answer(180));
  lab.clock(NOW + 299);
  assert.deepEqual(lab.ask("www.outside.net. A", RD), answer(1));
  lab.clock(NOW + 300);
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
  assert.equal(sumCounter(lab.shared, COUNTER.CACHE_HITS), 3);
  assert.equal(sumCounter(lab.shared, COUNTER.CACHE_MISSES), 1);
  assert.equal(sumCounter(lab.shared, COUNTER.CACHE_STALE), 0);
});

test("a chain, NXDOMAIN, NODATA and a failure are answered as the upstream has them", () => {
  const lab = forwardingLab();
  lab.cached("a.far. A", CHAIN);
  lab.cached("no.far. A", NONE);
  lab.cached("a.far. TXT", { ...NONE, rcode: RCODE.NOERROR });
  lab.cached("bad.far. A", { route: ROUTES.default, rcode: RCODE.SERVFAIL, extendedError: EDE.NETWORK_ERROR });
  lab.clock(NOW + 10);
  assert.deepEqual(lab.ask("A.far. A", RD), [
    "NOERROR rd ra",
    "answer A.far. 290 IN CNAME b.far.",
    "answer b.far. 190 IN CNAME c.far.",
    "answer c.far. 90 IN A 198.51.100.3",
  ]);
  const soa = "authority far. 50 IN SOA ns.far. host.far. 1 2 3 4 60";
  assert.deepEqual(lab.ask("no.far. A", RD), ["NXDOMAIN rd ra", soa]);
  assert.deepEqual(lab.ask("a.far. TXT", RD), ["NOERROR rd ra", soa]);
  assert.deepEqual(lab.ask("bad.far. A", RD), ["SERVFAIL rd ra ede=23"]);
});

test("an answer of the cache goes behind CNAMEs of ours, with its names where they are then", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", WWW);
  lab.cached("loop.outside.net. A", {
    ...NONE,
    authorities: "outside.net. 60 SOA ns.outside.net. h.outside.net. 1 2 3 4 60",
  });
  assert.deepEqual(lab.ask("out2.example.test. A", RD), [
    "NOERROR aa rd ra",
    "answer out2.example.test. 300 IN CNAME out.example.test.",
    "answer out.example.test. 300 IN CNAME www.outside.net.",
    "answer www.outside.net. 300 IN A 198.51.100.1",
    "answer www.outside.net. 300 IN A 198.51.100.2",
  ]);
  assert.deepEqual(lab.ask("loop.example.test. A", RD), [
    "NXDOMAIN aa rd ra",
    "answer loop.example.test. 300 IN CNAME loop.outside.net.",
    "authority outside.net. 60 IN SOA ns.outside.net. h.outside.net. 1 2 3 4 60",
  ]);
});

test("an open chain goes on with live data of ours, with other routes, and ends where nothing is known", () => {
  const lab = forwardingLab();
  lab.cached("x.far. A", { route: ROUTES.default, isOpen: true, answers: "x.far. 300 CNAME www.example.test." });
  lab.cached("y.far. A", { route: ROUTES.default, isOpen: true, answers: "y.far. 300 CNAME y.corp." });
  lab.cached("y.corp. A", { route: ROUTES.corp, isOpen: true, answers: "y.corp. 300 CNAME out.example.test." });
  assert.deepEqual(lab.ask("x.far. A", RD), [
    "NOERROR rd ra",
    "answer x.far. 300 IN CNAME www.example.test.",
    "answer www.example.test. 300 IN A 192.0.2.1",
  ]);
  assert.equal(lab.lack("y.far. A", RD), "99 www.outside.net. A 0");
  lab.cached("www.outside.net. A", WWW);
  assert.deepEqual(lab.ask("y.far. A", RD), [
    "NOERROR rd ra",
    "answer y.far. 300 IN CNAME y.corp.",
    "answer y.corp. 300 IN CNAME out.example.test.",
    "answer out.example.test. 300 IN CNAME www.outside.net.",
    "answer www.outside.net. 300 IN A 198.51.100.1",
    "answer www.outside.net. 300 IN A 198.51.100.2",
  ]);
  lab.cached("z.far. A", { route: ROUTES.default, isOpen: true, answers: "z.far. 300 CNAME nope.example.test." });
  assert.deepEqual(lab.ask("z.far. A", RD), [
    "NXDOMAIN rd ra",
    "answer z.far. 300 IN CNAME nope.example.test.",
    negative("example.test."),
  ]);
});

test("loops over names of ours and of others end", () => {
  const lab = forwardingLab();
  lab.cached("loop.outside.net. A", {
    route: ROUTES.default,
    isOpen: true,
    answers: "loop.outside.net. 300 CNAME loop.example.test.",
  });
  const links = [
    "answer loop.example.test. 300 IN CNAME loop.outside.net.",
    "answer loop.outside.net. 300 IN CNAME loop.example.test.",
  ];
  assert.deepEqual(lab.ask("loop.example.test. A", RD), ["NOERROR aa rd ra", ...links]);
  assert.deepEqual(lab.ask("loop.outside.net. A", RD), ["NOERROR rd ra", links[1], links[0]]);
});

test("a question for the CNAME is answered by it alone", () => {
  const lab = forwardingLab();
  lab.cached("x.far. CNAME", { route: ROUTES.default, isOpen: true, answers: "x.far. 300 CNAME www.example.test." });
  assert.equal(lab.ask("x.far. CNAME", RD).length, 2);
});

test("an answer counts for the route that it came by only, and for its flags", () => {
  const lab = forwardingLab();
  lab.cached("www.corp. A", { route: ROUTES.default, answers: "www.corp. 300 A 198.51.100.9" });
  assert.equal(lab.lack("www.corp. A", RD), "50 www.corp. A 0");
  lab.cached("www.corp. A", { route: ROUTES.corp, answers: "www.corp. 300 A 198.51.100.9" });
  assert.equal(lab.ask("www.corp. A", RD).length, 2);
  assert.equal(lab.lack("www.corp. A", { ...RD, edns: { wantsDnssec: true } }), "50 www.corp. A 1");
  lab.cached("www.corp. A", { route: ROUTES.corp, flags: 3, answers: "www.corp. 300 A 198.51.100.8" });
  assert.deepEqual(lab.ask("www.corp. A", { flags: FLAG.RD | FLAG.CD, edns: { wantsDnssec: true } }), [
    "NOERROR rd ra cd",
    "answer www.corp. 300 IN A 198.51.100.8",
  ]);
  lab.route("corp.", 51);
  assert.equal(lab.lack("www.corp. A", RD), "51 www.corp. A 0");
});

test("when routing has changed a chain's names are routed again, and it counts where they go where they went", () => {
  const lab = forwardingLab();
  lab.cached("a.far. A", CHAIN);
  const before = lab.ask("a.far. A", RD);
  lab.publish(zone("other.test."));
  lab.route("elsewhere.", 60);
  assert.deepEqual(lab.ask("a.far. A", RD), before);
  lab.route("b.far.", 60);
  assert.equal(lab.lack("a.far. A", RD), "99 a.far. A 0");
  lab.route("b.far.", 0);
  assert.deepEqual(lab.ask("a.far. A", RD), before);
  lab.override("c.far. 300 A 192.0.2.77");
  assert.equal(lab.lack("a.far. A", RD), "99 a.far. A 0");
  lab.override("");
  assert.deepEqual(lab.ask("a.far. A", RD), before);
  lab.publish(zone("far.", "a A 192.0.2.78\n"));
  assert.deepEqual(lab.ask("a.far. A", RD), ["NOERROR aa rd ra", "answer a.far. 300 IN A 192.0.2.78"]);
});

test("an expired answer counts as a stale one while it is used so, with a TTL of 30 s and an extended error", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", { ...WWW, seconds: 10, keptSeconds: 1000 });
  lab.clock(NOW + 20);
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
  const entry = lab.cache.find(lab.key("www.outside.net."), 1, 0);
  assert(lab.cache.useStale(entry, NOW + 50));
  assert.deepEqual(lab.ask("www.outside.net. A", RD), [
    "NOERROR rd ra ede=3",
    "answer www.outside.net. 30 IN A 198.51.100.1",
    "answer www.outside.net. 30 IN A 198.51.100.2",
  ]);
  assert.deepEqual(lab.ask("www.outside.net. A"), ["REFUSED ra ede=20"]);
  assert.equal(sumCounter(lab.shared, COUNTER.CACHE_STALE), 1);
  lab.clock(NOW + 50);
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
});

test("an expired NXDOMAIN has an extended error of its own (RFC 8914 section 4.20)", () => {
  const lab = forwardingLab();
  lab.cached("no.far. A", { ...NONE, seconds: 10, keptSeconds: 1000 });
  lab.clock(NOW + 20);
  assert(lab.cache.useStale(lab.cache.find(lab.key("no.far."), 1, 0), NOW + 50));
  assert.deepEqual(lab.ask("no.far. A", RD), [
    "NXDOMAIN rd ra ede=19",
    "authority far. 30 IN SOA ns.far. host.far. 1 2 3 4 60",
  ]);
});

test("whoever waited for an answer takes one that has no time", () => {
  const lab = forwardingLab({ isResolver: true });
  const position = lab.cache.position();
  lab.cached("www.outside.net. A", { ...WWW, seconds: 0 });
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
  lab.answerer.acceptFrom(position);
  assert.equal(lab.ask("www.outside.net. A", RD).length, 3);
  lab.answerer.acceptFrom(lab.cache.position());
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
  lab.answerer.acceptFrom(position);
  lab.answerer.acceptFrom(-1);
  assert.equal(lab.lack("www.outside.net. A", RD), "99 www.outside.net. A 0");
  assert.equal(sumCounter(lab.shared, COUNTER.CACHE_HITS) + sumCounter(lab.shared, COUNTER.CACHE_MISSES), 0);
});

test("a popular answer near its end is to be fetched anew, once", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", { ...WWW, seconds: 100 });
  lab.cached("rare.far. A", { route: ROUTES.default, seconds: 100, answers: "rare.far. 100 A 198.51.100.1" });
  const refreshed = (question: string) => {
    lab.ask(question, RD);
    return lab.answerer.refresh;
  };
  for (let count = 0; count < 5; count++) assert.equal(refreshed("www.outside.net. A"), 0);
  lab.clock(NOW + 89);
  assert.equal(refreshed("www.outside.net. A"), 0);
  lab.clock(NOW + 90);
  assert.equal(refreshed("rare.far. A"), 0);
  assert.equal(refreshed("www.outside.net. A"), lab.cache.find(lab.key("www.outside.net."), 1, 0));
  assert.equal(refreshed("www.outside.net. A"), 0);
});

test("without RD fresh answers of the cache are given", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", WWW);
  assert.deepEqual(lab.ask("www.outside.net. A")[0], "NOERROR ra");
  assert.deepEqual(lab.ask("out.example.test. A").length, 4);
});

test("an ALIAS has the addresses of its target, under its own name and with the smaller TTL", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", WWW);
  assert.deepEqual(lab.ask("alias.example.test. A"), [
    "NOERROR aa ra",
    "answer alias.example.test. 50 IN A 198.51.100.1",
    "answer alias.example.test. 50 IN A 198.51.100.2",
  ]);
  lab.clock(NOW + 290);
  assert.deepEqual(lab.ask("to-alias.example.test. A", RD), [
    "NOERROR aa rd ra",
    "answer to-alias.example.test. 300 IN CNAME alias.example.test.",
    "answer alias.example.test. 10 IN A 198.51.100.1",
    "answer alias.example.test. 10 IN A 198.51.100.2",
  ]);
});

test("an ALIAS follows the chain of its target, back to us too", () => {
  const lab = forwardingLab();
  const target = (answers: string, isOpen: boolean) =>
    lab.cached("www.outside.net. A", { route: ROUTES.default, answers, isOpen });
  target("www.outside.net. 300 CNAME w.far.\nw.far. 20 A 198.51.100.4", false);
  assert.deepEqual(lab.ask("alias.example.test. A"), [
    "NOERROR aa ra",
    "answer alias.example.test. 20 IN A 198.51.100.4",
  ]);
  target("www.outside.net. 40 CNAME www.example.test.", true);
  assert.deepEqual(lab.ask("alias.example.test. A"), ["NOERROR aa ra", "answer alias.example.test. 40 IN A 192.0.2.1"]);
  target("www.outside.net. 40 CNAME a.corp.", true);
  assert.equal(lab.lack("alias.example.test. A"), "50 a.corp. A 0");
  lab.cached("a.corp. A", { route: ROUTES.corp, answers: "a.corp. 30 A 198.51.100.5" });
  assert.deepEqual(lab.ask("alias.example.test. A"), [
    "NOERROR aa ra",
    "answer alias.example.test. 30 IN A 198.51.100.5",
  ]);
  target("www.outside.net. 40 CNAME www.outside.net.", true);
  assert.deepEqual(lab.ask("alias.example.test. A"), ["SERVFAIL ra ede=22"]);
});

test("an ALIAS whose target has no addresses has none, and one whose target fails fails", () => {
  const lab = forwardingLab();
  lab.cached("www.outside.net. A", NONE);
  assert.deepEqual(lab.ask("alias.example.test. A"), ["NOERROR aa ra", negative("example.test.")]);
  lab.cached("www.outside.net. A", { route: ROUTES.default, rcode: RCODE.SERVFAIL, extendedError: EDE.NETWORK_ERROR });
  assert.deepEqual(lab.ask("alias.example.test. A"), ["SERVFAIL ra ede=23"]);
});

test("a name below a cut of ours is answered as its name servers do", () => {
  const lab = forwardingLab();
  lab.cached("x.cut.example.test. A", { route: ROUTE.DELEGATED, answers: "x.cut.example.test. 300 A 198.51.100.6" });
  assert.deepEqual(lab.ask("x.cut.example.test. A", RD), [
    "NOERROR rd ra",
    "answer x.cut.example.test. 300 IN A 198.51.100.6",
  ]);
  assert.equal(lab.ask("wild.example.test. A", RD).length, 3);
  assert.equal(lab.ask("below-cut.example.test. A").length, 2);
});

test("what does not fit is truncated, and is whole over TCP", () => {
  const lab = forwardingLab();
  const answers = Array.from({ length: 200 }, (_, index) => `many.far. 300 A 10.0.0.${index}`).join("\n");
  lab.cached("many.far. A", { route: ROUTES.default, answers });
  assert.deepEqual(lab.ask("many.far. A", RD), ["NOERROR tc rd ra"]);
  assert.equal(lab.ask("many.far. A", { ...RD, transport: TRANSPORT.TCP }).length, 201);
});

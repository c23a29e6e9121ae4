import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  createResolverLab,
  HARDENING,
  type ResolverLab,
  type RouteText,
  type Script,
} from "../../tests/support/resolver-lab.ts";
import type { ResponseText } from "../../tests/support/response-lab.ts";
import { EDE, RCODE } from "../dns/codes.ts";
import { ITERATION_STEPS_ALL, NAME_SERVER_LOOKUPS_MAX } from "./resolver-limits.ts";

const HINT = "192.0.2.1";
const CHILD = "192.0.2.2";
const GRANDCHILD = "192.0.2.3";
const DEFAULT_SERVER = "192.0.2.53";
const STUB: RouteText = { number: 20, kind: "stub", domain: "corp.test.", upstreams: [HINT] };
const DEFAULT: RouteText = {
  number: 16,
  kind: "default",
  domain: ".",
  upstreams: [DEFAULT_SERVER],
  hardening: HARDENING,
};
const FAILED = `RCODE 2 EDE ${EDE.NO_REACHABLE_AUTHORITY}`;

function lab(scripts: Readonly<Record<string, Script>>): ResolverLab {
  const made = createResolverLab();
  for (const [address, script] of Object.entries(scripts)) made.servers.set(address, script);
  made.setRoutes([DEFAULT, STUB]);
  return made;
}

/** A referral to a zone with servers and the addresses that go with it. */
function refer(cut: string, servers: Readonly<Record<string, string | undefined>>): ResponseText {
  return {
    authority: Object.keys(servers).map((server) => `${cut} 600 NS ${server}`),
    additional: Object.entries(servers).flatMap(([server, address]) =>
      address === undefined ? [] : [`${server} 600 A ${address}`],
    ),
  };
}

const answer: Script = (name, type) =>
  type === "A" ? { isAuthoritative: true, answer: [`${name} 60 A 203.0.113.1`] } : { isAuthoritative: true };

async function resolveWithin(made: ResolverLab, name: string, ms = 7_000): Promise<string | undefined> {
  const resolved = made.resolve(name);
  await made.pass(ms);
  await resolved;
  return made.text(name);
}

describe("a stub zone", () => {
  test("is asked at its hints, without recursion", async () => {
    const made = lab({ [HINT]: answer });
    assert.equal(await resolveWithin(made, "a.corp.test."), "RCODE 0; a.corp.test. 60 A 203.0.113.1");
    assert.deepEqual(made.asked, [`${HINT} a.corp.test. A`]);
    assert.equal(made.entry("a.corp.test.")?.route, 20);
  });

  test("refers downwards by glue, and what was learned is used as long as it holds", async () => {
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns.sub.corp.test.": CHILD }),
      [CHILD]: (name) =>
        name.endsWith("deep.sub.corp.test.")
          ? refer("deep.sub.corp.test.", { "ns.corp.test.": undefined, "ns.deep.sub.corp.test.": GRANDCHILD })
          : { isAuthoritative: true, answer: [`${name} 60 A 203.0.113.1`] },
      [GRANDCHILD]: answer,
    });
    assert.equal(await resolveWithin(made, "a.deep.sub.corp.test."), "RCODE 0; a.deep.sub.corp.test. 60 A 203.0.113.1");
    assert.deepEqual(
      made.asked,
      [HINT, CHILD, GRANDCHILD].map((server) => `${server} a.deep.sub.corp.test. A`),
    );
    await resolveWithin(made, "b.deep.sub.corp.test.");
    await resolveWithin(made, "c.sub.corp.test.");
    assert.deepEqual(made.asked.slice(3), [`${GRANDCHILD} b.deep.sub.corp.test. A`, `${CHILD} c.sub.corp.test. A`]);
    await made.pass(600_000);
    await resolveWithin(made, "d.sub.corp.test.");
    assert.deepEqual(
      made.asked.slice(5),
      [HINT, CHILD].map((server) => `${server} d.sub.corp.test. A`),
    );
  });

  test("is asked from the top again where what was learned fails", async () => {
    let child = CHILD;
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns.sub.corp.test.": child }),
      [CHILD]: answer,
      [GRANDCHILD]: answer,
    });
    await resolveWithin(made, "a.sub.corp.test.");
    made.servers.set(CHILD, () => ({ rcode: RCODE.REFUSED }));
    child = GRANDCHILD;
    assert.equal(await resolveWithin(made, "b.sub.corp.test."), "RCODE 0; b.sub.corp.test. 60 A 203.0.113.1");
    assert.deepEqual(
      made.asked.slice(2),
      [CHILD, HINT, GRANDCHILD].map((server) => `${server} b.sub.corp.test. A`),
    );
  });

  test("is asked at the next server of a cut where one is lame", async () => {
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns1.sub.corp.test.": CHILD, "ns2.sub.corp.test.": GRANDCHILD }),
      [CHILD]: () => refer("test.", { "ns.test.": HINT }),
      [GRANDCHILD]: answer,
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), "RCODE 0; a.sub.corp.test. 60 A 203.0.113.1");
  });

  test("is flushed with the names below it", async () => {
    const made = lab({ [HINT]: () => refer("sub.corp.test.", { "ns.sub.corp.test.": CHILD }), [CHILD]: answer });
    await resolveWithin(made, "a.sub.corp.test.");
    made.resolver.flush(undefined, true);
    await resolveWithin(made, "b.sub.corp.test.");
    assert.equal(made.asked.filter((each) => each.startsWith(HINT)).length, 2);
  });

  test("denies by its own word", async () => {
    const soa = "sub.corp.test. 900 SOA ns.sub.corp.test. host.corp.test. 1 2 3 4 300";
    const made = lab({ [HINT]: () => ({ isAuthoritative: true, rcode: RCODE.NXDOMAIN, authority: [soa] }) });
    assert.match((await resolveWithin(made, "a.sub.corp.test.")) ?? "", /^RCODE 3 \| sub\.corp\.test\. 300 SOA/);
  });
});

describe("name servers without glue", () => {
  test("are looked up by the route of their name, along its aliases", async () => {
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns.elsewhere.": undefined }),
      [DEFAULT_SERVER]: (name) =>
        name === "ns.elsewhere."
          ? { answer: ["ns.elsewhere. 60 CNAME ns2.elsewhere."] }
          : { answer: [`${name} 60 A ${CHILD}`] },
      [CHILD]: answer,
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), "RCODE 0; a.sub.corp.test. 60 A 203.0.113.1");
    assert.deepEqual(made.asked, [
      `${HINT} a.sub.corp.test. A`,
      `${DEFAULT_SERVER} ns.elsewhere. A rd`,
      `${DEFAULT_SERVER} ns2.elsewhere. A rd`,
      `${CHILD} a.sub.corp.test. A`,
    ]);
  });

  test("that have IPv6 only are found too", async () => {
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns.elsewhere.": undefined }),
      [DEFAULT_SERVER]: (name, type) => (type === "AAAA" ? { answer: [`${name} 60 AAAA 2001:db8::2`] } : { rcode: 0 }),
      "2001:db8::2": answer,
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), "RCODE 0; a.sub.corp.test. 60 A 203.0.113.1");
  });

  test("are taken one after the other, and few of them however many there are", async () => {
    const servers = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`ns${index}.victim.`, undefined]));
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", servers),
      [DEFAULT_SERVER]: () => ({ rcode: RCODE.NXDOMAIN }),
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), FAILED);
    const names = new Set(made.asked.filter((each) => each.includes("victim.")).map((each) => each.split(" ")[1]));
    assert.equal(names.size, NAME_SERVER_LOOKUPS_MAX);
  });

  test("share the few look-ups with what they cause themselves", async () => {
    const made = lab({
      [HINT]: (name) => {
        const cut = name.slice(name.indexOf(".") + 1);
        return refer(
          cut,
          Object.fromEntries(
            Array.from({ length: 5 }, (_, index) => [`x.n${index}-${name.length}.corp.test.`, undefined]),
          ),
        );
      },
      [DEFAULT_SERVER]: () => ({ rcode: RCODE.NXDOMAIN }),
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), FAILED);
    assert.ok(made.asked.length <= 2 * NAME_SERVER_LOOKUPS_MAX + 1, `${made.asked.length} questions`);
  });

  test("whose addresses take long chains of names end the question after a while", async () => {
    // Every name server's name is an alias, whose target lies below another cut with such a name server.
    let count = 0;
    const made = lab({
      [HINT]: (name) => {
        count++;
        const cut = name.slice(name.indexOf(".") + 1);
        if (name.startsWith("alias"))
          return { isAuthoritative: true, answer: [`${name} 60 CNAME n.z${count}.corp.test.`] };
        return refer(cut, { [`alias${count}.corp.test.`]: undefined });
      },
    });
    assert.match((await resolveWithin(made, "a.sub.corp.test.", 0)) ?? "", /^RCODE 2 /);
    assert.ok(made.asked.length <= ITERATION_STEPS_ALL, `${made.asked.length} questions`);
    assert.equal(made.resolver.figures().inFlight, 0);
  });

  test("that wait for each other end at once", async () => {
    const made = lab({
      [HINT]: (name) =>
        name.endsWith("one.corp.test.")
          ? refer("one.corp.test.", { "ns.two.corp.test.": undefined })
          : refer("two.corp.test.", { "ns.one.corp.test.": undefined }),
    });
    assert.equal(await resolveWithin(made, "a.one.corp.test.", 0), FAILED);
    const both = [made.resolve("b.one.corp.test."), made.resolve("b.two.corp.test.")];
    await made.pass(0);
    assert.equal((await Promise.all(both)).length, 2);
    assert.equal(made.resolver.figures().inFlight, 0);
  });

  test("inside of the zone that they serve are not looked for", async () => {
    const made = lab({ [HINT]: () => refer("sub.corp.test.", { "ns.sub.corp.test.": undefined }) });
    assert.equal(await resolveWithin(made, "a.sub.corp.test.", 0), FAILED);
    assert.equal(made.asked.length, 1);
  });
});

describe("servers that lie", () => {
  test("give no glue for names outside of their zone", async () => {
    const made = lab({
      [HINT]: () => refer("sub.corp.test.", { "ns.elsewhere.": "203.0.113.66" }),
      "203.0.113.66": () => ({ isAuthoritative: true, answer: ["a.sub.corp.test. 60 A 203.0.113.66"] }),
      [DEFAULT_SERVER]: (name) => ({ answer: [`${name} 60 A ${CHILD}`] }),
      [CHILD]: answer,
    });
    assert.equal(await resolveWithin(made, "a.sub.corp.test."), "RCODE 0; a.sub.corp.test. 60 A 203.0.113.1");
    assert.ok(!made.asked.some((each) => each.startsWith("203.0.113.66")));
  });

  test("refer upwards, sideways or to themselves in vain", async () => {
    for (const cut of [".", "test.", "corp.test.", "other.corp.test.", "evil."]) {
      const made = lab({ [HINT]: () => refer(cut, { "ns.corp.test.": CHILD }), [CHILD]: answer });
      assert.equal(await resolveWithin(made, "a.sub.corp.test.", 0), FAILED, cut);
      assert.equal(made.asked.length, 1);
    }
  });

  test("refer down for ever, and are followed for a while", async () => {
    const labels = Array.from({ length: 40 }, (_, index) => `l${index}`);
    const name = `${labels.join(".")}.corp.test.`;
    let depth = labels.length;
    const made = lab({
      [HINT]: () => {
        depth--;
        return refer(`${labels.slice(depth).join(".")}.corp.test.`, {
          [`ns.${labels.slice(depth).join(".")}.corp.test.`]: HINT,
        });
      },
    });
    assert.equal(await resolveWithin(made, name, 0), `RCODE 2 EDE ${EDE.OTHER}`);
    assert.equal(made.asked.length, 16);
  });

  test("say nothing, and the question ends in time", async () => {
    const made = lab({ [HINT]: () => refer("sub.corp.test.", { "ns.sub.corp.test.": CHILD }) });
    const resolved = made.resolve("a.sub.corp.test.");
    await made.pass(6_000);
    assert.deepEqual(await resolved, { kind: "stored" });
    assert.equal(made.text("a.sub.corp.test."), FAILED);
    assert.equal(made.resolver.figures().inFlight, 0);
  });
});

describe("below a zone cut of ours", () => {
  test("the name servers of our zone are asked, by their addresses or else their names", async () => {
    const made = lab({
      [CHILD]: answer,
      [DEFAULT_SERVER]: (name) => ({ answer: [`${name} 60 A ${GRANDCHILD}`] }),
      [GRANDCHILD]: answer,
    });
    made.delegations.push({ cut: "child.own.", servers: { "ns.child.own.": [CHILD], "ns.elsewhere.": [] } });
    made.delegations.push({ cut: "far.own.", servers: { "ns.elsewhere.": [] } });
    assert.equal(await resolveWithin(made, "a.child.own."), "RCODE 0; a.child.own. 60 A 203.0.113.1");
    assert.equal(await resolveWithin(made, "a.far.own."), "RCODE 0; a.far.own. 60 A 203.0.113.1");
    assert.deepEqual(made.asked, [
      `${CHILD} a.child.own. A`,
      `${DEFAULT_SERVER} ns.elsewhere. A rd`,
      `${GRANDCHILD} a.far.own. A`,
    ]);
  });

  test("a change of the cut counts at once", async () => {
    const made = lab({ [CHILD]: answer, [GRANDCHILD]: answer });
    made.delegations.push({ cut: "child.own.", servers: { "ns.child.own.": [CHILD] } });
    await resolveWithin(made, "a.child.own.");
    made.delegations.splice(0, 1, { cut: "child.own.", servers: { "ns.child.own.": [GRANDCHILD] } });
    await resolveWithin(made, "b.child.own.");
    assert.deepEqual(made.asked, [`${CHILD} a.child.own. A`, `${GRANDCHILD} b.child.own. A`]);
  });

  test("a cut that is gone is a failure", async () => {
    const made = lab({});
    assert.deepEqual(await made.resolve("a.child.own.", "A", 0, 1), { kind: "stored" });
    assert.equal(made.text("a.child.own."), `RCODE 2 EDE ${EDE.OTHER}`);
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, openLab, type ZoneLab, zone } from "../../tests/support/zone-lab.ts";
import { FLAG, RRTYPE } from "../dns/codes.ts";
import { rdataFromText } from "../dns/rdata.ts";
import { COUNTER, sumCounter } from "../image/counters.ts";
import { activateZone, beginChange, endChange, showOverrides } from "../image/writer.ts";
import { beginOverrides, putOverride } from "../publish/override-image.ts";
import { createZoneTools } from "../publish/store-zone.ts";
import { addRecord, changeRRset, finishZone, startZone, type ZonePublisher } from "../publish/zone-publisher.ts";

function rdata(type: number, text: string): Uint8Array {
  const result = rdataFromText(type, text);
  return result.kind === "rdata" ? result.rdata : assert.fail(result.detail);
}

/** The zone `t.` with `www` and an alias out of it, which asks the hook in the middle of an answer. */
function publishZone(lab: ZoneLab): ZonePublisher {
  const publisher = startZone(lab.writer, nameOf("t."));
  const add = (owner: string, type: number, text: string) => {
    const name = nameOf(owner);
    const bytes = rdata(type, text);
    addRecord(publisher, name, name.length, type, 300, bytes, bytes.length, 1, 1);
  };
  add("t.", RRTYPE.SOA, "ns.t. h.t. 1 1 1 1 60");
  add("www.t.", RRTYPE.A, "192.0.2.1");
  add("out.t.", RRTYPE.CNAME, "one.elsewhere.");
  assert.equal(finishZone(publisher).ok, true);
  activateZone(lab.writer, publisher.zone, publisher.apex);
  return publisher;
}

const WWW = ["NOERROR aa", "answer www.t. 300 IN A 192.0.2.1"];

test("a zone that stays in the middle of a change is answered after two repeats", () => {
  const lab = openLab([]);
  const { zone: handle } = publishZone(lab);
  beginChange(lab.writer, handle);
  assert.deepEqual(lab.ask("www.t. A"), WWW);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 2);
  endChange(lab.writer, handle);
  assert.deepEqual(lab.ask("www.t. A"), WWW);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 2);
});

test("another zone's change repeats nothing", () => {
  const lab = openLab([zone("other.", "www A 192.0.2.2\n")]);
  beginChange(lab.writer, publishZone(lab).zone);
  assert.equal(lab.ask("www.other. A").length, 2);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 0);
});

test("an answer whose zone changed under it is made again, from nothing", () => {
  let changes = 0;
  const lab = openLab([], {
    answerer: {
      trace: (event) => {
        if (event.kind !== "follow" || changes++ > 0) return;
        beginChange(lab.writer, publisher.zone);
        changeRRset(publisher, nameOf("out.t."), RRTYPE.CNAME, 300, [rdata(RRTYPE.CNAME, "two.elsewhere.")]);
        endChange(lab.writer, publisher.zone);
      },
    },
  });
  const publisher = publishZone(lab);
  assert.deepEqual(lab.ask("out.t. A"), ["NOERROR aa", "answer out.t. 300 IN CNAME two.elsewhere."]);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 1);
});

test("one that lacks something is not made again", () => {
  const lab = openLab([], { answerer: { forwards: true } });
  lab.route(".", 77);
  beginChange(lab.writer, publishZone(lab).zone);
  assert.equal(lab.lack("out.t. A", { flags: FLAG.RD }), "77 one.elsewhere. A 0");
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 0);
});

test("one that lacks something only when it is made again is not waited for: its query is written over", () => {
  let changes = 0;
  const lab = openLab([], {
    answerer: {
      forwards: true,
      trace: (event) => {
        if (event.kind !== "rrset" || changes++ > 0) return;
        beginChange(lab.writer, publisher.zone);
        changeRRset(publisher, nameOf("www.t."), RRTYPE.A, 300, []);
        changeRRset(publisher, nameOf("www.t."), RRTYPE.CNAME, 300, [rdata(RRTYPE.CNAME, "one.elsewhere.")]);
        endChange(lab.writer, publisher.zone);
      },
    },
  });
  lab.route(".", 77);
  const publisher = publishZone(lab);
  assert.deepEqual(lab.ask("www.t. A", { flags: FLAG.RD }), [
    "SERVFAIL aa rd ra ede=0",
    "answer www.t. 300 IN CNAME one.elsewhere.",
  ]);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 1);
  assert.equal(lab.lack("www.t. A", { flags: FLAG.RD }), "77 one.elsewhere. A 0");
});

test("an answer whose overrides changed under it is made again, one where none had a part in it too", () => {
  let changes = 0;
  const lab = openLab([], {
    answerer: {
      trace: (event) => {
        // The chain's end has been looked for in vain.
        if (event.kind !== "route" || event.stage !== "none" || changes++ > 0) return;
        beginChange(lab.writer, overrides);
        putOverride(tools, overrides, nameOf("one.elsewhere."), [
          { type: RRTYPE.A, ttl: 9, rdatas: [rdata(RRTYPE.A, "10.0.0.2")] },
        ]);
        endChange(lab.writer, overrides);
      },
    },
  });
  publishZone(lab);
  const tools = createZoneTools(lab.writer, () => undefined);
  const overrides = beginOverrides(tools);
  putOverride(tools, overrides, nameOf("a.far."), [{ type: RRTYPE.A, ttl: 9, rdatas: [rdata(RRTYPE.A, "10.0.0.1")] }]);
  showOverrides(lab.writer, overrides);
  assert.deepEqual(lab.ask("out.t. A"), [
    "NOERROR aa",
    "answer out.t. 300 IN CNAME one.elsewhere.",
    "answer one.elsewhere. 9 IN A 10.0.0.2",
  ]);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 1);
  beginChange(lab.writer, overrides);
  assert.equal(lab.ask("a.far. A").length, 2);
  assert.equal(sumCounter(lab.shared, COUNTER.REPEATED), 3);
  endChange(lab.writer, overrides);
});

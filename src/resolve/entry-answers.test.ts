/** What is read in a response, laid as an entry and answered from the cache is still what the upstream said. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { arbitraryResponse, recordText, responseTo, rulesFor, typeNumber } from "../../tests/support/response-lab.ts";
import { wireName } from "../../tests/support/scripted-replies.ts";
import { openLab, zone } from "../../tests/support/zone-lab.ts";
import { FLAG } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { QUESTION_FLAG } from "../image/cache.ts";
import { TRANSPORT } from "../image/counters.ts";
import { CONTROL } from "../image/shared.ts";
import { encodeEntry } from "./entry.ts";
import { readResponse } from "./response.ts";

const ROUTE = 16;
const NOW = 1_000;

test("an answer from the cache has the records that were read, behind a CNAME of ours as well", () => {
  const aliases = ["a.test.", "b.test.", "d.c.b.test."];
  const body = aliases.map((target, index) => `alias${index} CNAME ${target}`).join("\n");
  const lab = openLab([zone("own.example.", body)], { nowSeconds: NOW, answerer: { forwards: true } });
  lab.route(".", ROUTE);
  let compared = 0;
  let open = 0;
  fc.assert(
    fc.property(arbitraryResponse, fc.boolean(), fc.boolean(), (text, wantsDnssec, isScrubbing) => {
      const flags = wantsDnssec ? QUESTION_FLAG.DNSSEC_OK : 0;
      const asked = { name: wireName(text.name), type: typeNumber(text.type), flags, route: ROUTE };
      const reading = readResponse(
        responseTo(text.name, text.type, text),
        rulesFor(text.name, text.type, { flags, isScrubbing }),
      );
      if (reading.kind !== "answer" || reading.ttlSeconds === 0) return;
      const expiresSeconds = NOW + reading.ttlSeconds;
      const routing = new Int32Array(lab.shared.control)[CONTROL.ROUTING]!;
      const terms = { routing, storedSeconds: NOW, expiresSeconds, keptUntilSeconds: expiresSeconds };
      const entry = encodeEntry(asked, reading, terms);
      assert.ok(entry !== undefined && lab.cache.put(entry));
      const options = { flags: FLAG.RD, transport: TRANSPORT.TCP, edns: { wantsDnssec } };
      const alias = aliases.indexOf(text.name);
      const isAliased = alias >= 0 && !["CNAME", "ANY", "RRSIG"].includes(text.type);
      if (reading.isOpen) {
        open++;
        const target = nameToText(reading.followed.at(-1)!.rdata).toLowerCase();
        assert.equal(lab.lack(`${text.name} ${text.type}`, options), `${ROUTE} ${target} ${text.type} ${flags}`);
      } else {
        compared++;
        const told = lab.message(`${text.name} ${text.type}`, options);
        assert.equal(told.rcode, reading.rcode);
        assert.deepEqual(fold(told.answers.map(recordText)), fold(reading.answers.map(recordText)));
        assert.deepEqual(fold(told.authorities.map(recordText)), fold(reading.authorities.map(recordText)));
        if (isAliased) {
          const behind = lab.message(`alias${alias}.own.example. ${text.type}`, options);
          const cname = `alias${alias}.own.example. 300 cname ${text.name}`;
          assert.deepEqual(fold(behind.answers.map(recordText)), [cname, ...fold(reading.answers.map(recordText))]);
          assert.deepEqual(fold(behind.authorities.map(recordText)), fold(reading.authorities.map(recordText)));
        }
      }
      lab.cache.flush();
    }),
    { numRuns: 2_000 },
  );
  assert.ok(compared > 200 && open > 50, `${compared} compared, ${open} open`);
});

function fold(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.toLowerCase());
}

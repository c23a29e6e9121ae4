import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  arbitraryName,
  arbitraryOverrides,
  arbitraryZones,
  QUESTION_TYPES,
  zoneText,
} from "../../tests/support/arbitrary-zones.ts";
import { naiveAnswer } from "../../tests/support/naive-resolver.ts";
import { openLab } from "../../tests/support/zone-lab.ts";
import { TRANSPORT } from "../image/counters.ts";

const questions = fc.array(fc.tuple(arbitraryName, fc.constantFrom(...QUESTION_TYPES)), {
  minLength: 30,
  maxLength: 30,
});

test("answers from any zones are those of a resolver in plain maps", () => {
  fc.assert(
    fc.property(arbitraryZones, questions, (zones, asked) => {
      const { ask } = openLab(zones.map(zoneText));
      for (const [name, type] of asked) {
        const lines = ask(`${name} ${type}`, { transport: TRANSPORT.TCP });
        assert.deepEqual(
          lines,
          naiveAnswer(zones, name, type),
          `${name} ${type}\n${zones.map(zoneText).join("---\n")}`,
        );
      }
    }),
    { numRuns: 300 },
  );
});

test("and with overrides", () => {
  fc.assert(
    fc.property(arbitraryZones, arbitraryOverrides, questions, (zones, overrides, asked) => {
      const { ask, override } = openLab(zones.map(zoneText));
      const text = overrides.map(({ owner, type, ttl, rdata }) => `${owner} ${ttl} ${type} ${rdata}\n`).join("");
      override(text);
      const names = overrides.flatMap(({ owner, type }): [string, string][] => [
        [owner, type],
        [owner, "A"],
        [owner, "TXT"],
      ]);
      for (const [name, type] of [...asked, ...names]) {
        if (type === "ALIAS") continue;
        const lines = ask(`${name} ${type}`, { transport: TRANSPORT.TCP });
        const expected = naiveAnswer(zones, name, type, overrides);
        assert.deepEqual(lines, expected, `${name} ${type}\n${zones.map(zoneText).join("---\n")}===\n${text}`);
      }
    }),
    { numRuns: 300 },
  );
});

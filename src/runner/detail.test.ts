import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { detailOf } from "./run-script.ts";

for (const [what, standardError, args, expected] of [
  ["says nothing", "", [], "exit status 2"],
  ["says one line", "disk is full\n", [], "exit status 2: disk is full"],
  ["says several lines", "starting\ndisk is full\n\n", [], "exit status 2: disk is full"],
  ["repeats an argument", "no user hunter2", ["hunter2"], "exit status 2: no user ***"],
  ["repeats an option's value", "bad hunter2", ["--password=hunter2"], "exit status 2: bad ***"],
  [
    "repeats a word of a URL",
    "401 for me and hunter2",
    ["https://me:hunter2@host/"],
    "exit status 2: 401 for me and ***",
  ],
  ["repeats a word of a shell's line", "no hunter2 here", ["-c", "login hunter2"], "exit status 2: no *** here"],
  ["has short arguments", "a or b", ["a", "-b"], "exit status 2: a or b"],
  ["draws on the terminal", "\u001b[31mred\r\u0007", [], "exit status 2: [31mred"],
] as const) {
  test(`the detail of a script that ${what}`, () => {
    assert.equal(detailOf("exit status 2", standardError, args), expected);
  });
}

test("no argument of three characters or more is ever told", () => {
  const secret = fc.stringMatching(/^[A-Z0-9!#$%^*+/?~-]{3,20}$/).filter((text) => !"***".includes(text));
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 4 }),
      fc.string(),
      fc.boolean(),
      (secrets, noise, isOption) => {
        const args = secrets.map((text) => (isOption ? `--with=${text}` : text));
        const told = detailOf("x", secrets.join(noise), args);
        assert.ok(told.length <= 200);
        for (const text of secrets) assert.ok(!told.slice(3).replaceAll("***", "\0").includes(text), told);
      },
    ),
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { commandFromArguments, helpText } from "./arguments.ts";
import { environmentName, SETTINGS } from "./config.ts";

test("zone files may be named in either form, with or without the zone", () => {
  assert.deepEqual(
    commandFromArguments([
      "--zone",
      "a.zone",
      "--zone=dir/b=c.zone",
      "--zone",
      "x.test=d/e=f.zone",
      "--zone=y.test.=g",
    ]),
    {
      kind: "serve",
      zones: [
        { name: undefined, file: "a.zone" },
        { name: undefined, file: "dir/b=c.zone" },
        { name: "x.test.", file: "d/e=f.zone" },
        { name: "y.test.", file: "g" },
      ],
    },
  );
  assert.deepEqual(commandFromArguments([]), { kind: "serve", zones: [] });
});

test("help and version need nothing else", () => {
  assert.deepEqual(commandFromArguments(["--zone", "x", "--help"]), { kind: "help" });
  assert.deepEqual(commandFromArguments(["-h"]), { kind: "help" });
  assert.deepEqual(commandFromArguments(["--version"]), { kind: "version" });
  for (const setting of Object.keys(SETTINGS)) assert.ok(helpText().includes(environmentName(setting)), setting);
});

test("what is no argument is refused with the nearest one", () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--zones", "x"], /^unknown argument "--zones"; did you mean --zone\?$/],
    [["--verison"], /did you mean --version\?$/],
    [["a.zone"], /^unknown argument "a\.zone"/],
    [["--zone"], /^--zone needs a file/],
    [["--zone="], /^--zone needs a file/],
    [["--zone", "--help"], /^--zone needs a file/],
  ];
  for (const [words, pattern] of cases) {
    assert.throws(
      () => commandFromArguments(words),
      (error) => error instanceof OperatorError && pattern.test(error.message),
      words.join(" "),
    );
  }
});

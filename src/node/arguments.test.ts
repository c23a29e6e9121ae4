import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { commandFromArguments, helpText } from "./arguments.ts";
import { SETTINGS } from "./config.ts";
import { environmentName } from "./config-environment.ts";

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
      config: undefined,
      zones: [
        { name: undefined, file: "a.zone" },
        { name: undefined, file: "dir/b=c.zone" },
        { name: "x.test.", file: "d/e=f.zone" },
        { name: "y.test.", file: "g" },
      ],
    },
  );
  assert.deepEqual(commandFromArguments([]), { kind: "serve", config: undefined, zones: [] });
});

test("a configuration file goes with every command that needs settings", () => {
  const config = "a.yaml";
  assert.deepEqual(commandFromArguments(["--config", config]), { kind: "serve", config, zones: [] });
  assert.deepEqual(commandFromArguments([`--config=${config}`, "--check"]), { kind: "check", config });
  assert.deepEqual(commandFromArguments(["--check"]), { kind: "check", config: undefined });
  const reset = { kind: "reset-admin-password", config };
  assert.deepEqual(commandFromArguments(["--reset-admin-password", "--config", config]), {
    ...reset,
    password: "random",
  });
  for (const words of [["--admin-password-stdin"], ["--reset-admin-password", "--admin-password-stdin"]]) {
    assert.deepEqual(commandFromArguments([...words, "--config", config]), { ...reset, password: "standard-input" });
  }
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
    [["--config"], /^--config needs a file: --config FILE$/],
    [["--confg=x"], /^unknown argument "--confg=x"; did you mean --config\?$/],
    [["--check=x"], /^unknown argument "--check=x"/],
    [["--config", "a", "--config", "b"], /^--config is given twice/],
    [["--check", "--reset-admin-password"], /^--check changes nothing/],
    [["--check", "--zone", "x"], /^--zone is for serving, and --check does not serve$/],
    [["--admin-password-stdin", "--zone", "x"], /^--zone is for serving/],
  ];
  for (const [words, pattern] of cases) {
    assert.throws(
      () => commandFromArguments(words),
      (error) => error instanceof OperatorError && pattern.test(error.message),
      words.join(" "),
    );
  }
});

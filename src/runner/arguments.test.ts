import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { runnerArguments } from "./arguments.ts";

test("all that the service says arrives", () => {
  const words =
    "--child --socket /run/s --user 900 --directory /srv/checks --hide /a --hide /b --log-level warn --log-format text";
  assert.deepEqual(runnerArguments(words.split(" ")), {
    socket: "/run/s",
    user: "900",
    directory: "/srv/checks",
    hidden: ["/a", "/b"],
    logLevel: "warn",
    logFormat: "text",
    isChild: true,
  });
});

test("by itself it inherits its socket and takes the default user", () => {
  const expected = {
    socket: undefined,
    user: "",
    directory: undefined,
    hidden: [],
    logLevel: "info",
    logFormat: "json",
  };
  assert.deepEqual(runnerArguments([]), { ...expected, isChild: false });
});

for (const words of ["--sockets /run/s", "--socket", "run", "--log-level loud", "--log-format xml"]) {
  test(`"${words}" is not understood`, () => {
    assert.throws(() => runnerArguments(words.split(" ")), OperatorError);
  });
}

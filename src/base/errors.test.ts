import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { codedError, errorCode, errorText, OperatorError } from "./errors.ts";

test("a code is found in whatever was thrown, or it is undefined", () => {
  assert.equal(errorCode(codedError("EADDRINUSE", "bind")), "EADDRINUSE");
  assert.throws(
    () => readFileSync("/nonexistent"),
    (error) => errorCode(error) === "ENOENT",
  );
  for (const thrown of [
    new Error("x"),
    Object.assign(new Error("x"), { code: 5 }),
    "EPERM",
    undefined,
    { code: "E" },
  ]) {
    assert.equal(errorCode(thrown), undefined);
  }
});

test("the text of whatever was thrown is one line", () => {
  assert.equal(errorText(new Error("first\n  second\r\nthird")), "first second third");
  assert.equal(errorText("plain"), "plain");
  assert.equal(errorText(undefined), "undefined");
  assert.deepEqual(new OperatorError("sum", ["one", "two"]).details, ["one", "two"]);
});

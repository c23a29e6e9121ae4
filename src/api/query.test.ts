import assert from "node:assert/strict";
import { test } from "node:test";
import Type from "typebox";
import { parseQuery, queryPlan } from "./query.ts";

const Known = { code: Type.Optional(Type.String()), limit: Type.Optional(Type.Integer()) };

test("a parameter that the route does not know is refused by its name", () => {
  const plan = queryPlan(Type.Object(Known), false);
  assert.throws(() => parseQuery(plan, "code=a&cod=b"), /\?cod/);
});

test("a route that ignores unknown parameters takes the others as strictly", () => {
  const plan = queryPlan(Type.Object(Known, { additionalProperties: true }), false);
  assert.deepEqual(parseQuery(plan, "code=a&vendor=%20x&limit=3"), { code: "a", limit: 3 });
  assert.throws(() => parseQuery(plan, "limit=x&vendor=1"), /\?limit/);
  assert.throws(() => parseQuery(plan, "vendor=%ff"), /UTF-8/);
  assert.throws(() => parseQuery(plan, "code=a&code=b"), /more than once/);
});

import assert from "node:assert/strict";
import test from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { startWholeApi } from "../../tests/support/whole-api.ts";
import { checkShape } from "../model/shape.ts";
import { exampleOf } from "./openapi-examples.ts";

test("the document is valid OpenAPI 3.1, names every route, and its examples have the shapes they illustrate", async () => {
  await using api = await startWholeApi({ version: "1.2.3" });
  const { status, body } = await api.ask("GET", "/openapi.json", { as: null });
  assert.equal(status, 200);
  assert.equal(body.info.version, "1.2.3");
  const result = await new Validator().validate(structuredClone(body));
  assert.ok(result.valid, JSON.stringify(result));
  for (const row of api.routes) {
    const path = row.path.replace(/:(\w+)/g, "{$1}");
    const operation = body.paths[path]?.[row.method.toLowerCase()];
    assert.ok(operation, `${row.method} ${path}`);
    assert.equal(operation["x-access"], row.access);
    const headers = operation.parameters.filter(({ in: place }: { in: string }) => place === "header");
    assert.equal(
      headers.some(({ name }: { name: string }) => name === "X-SVC-CSRF"),
      row.method !== "GET" || row.sensitive === true,
    );
    assert.ok(operation.responses["400"] && operation.responses["429"]);
    if (row.body === undefined) continue;
    assert.deepEqual(checkShape(row.body, exampleOf("", row.body)), [], `the example of ${row.method} ${path}`);
  }
  const ids = Object.values(body.paths).flatMap((path) =>
    Object.values(path as object).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length, "operation ids are unique");
});

test("the pages for a person come from this server alone", async () => {
  await using api = await startWholeApi();
  const page = await api.ask("GET", "//api/docs", { as: null });
  assert.equal(page.status, 200);
  assert.match(String(page.headers["content-security-policy"]), /default-src 'none'.*connect-src 'self'/);
  const references = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? "");
  assert.ok(references.length >= 4);
  for (const reference of references) {
    assert.match(reference, /^\/api\/docs\//);
    const file = await api.ask("GET", `/${reference}`, { as: null });
    assert.equal(file.status, 200, reference);
    assert.equal(file.headers["x-content-type-options"], "nosniff");
  }
  assert.equal((await api.ask("GET", "//api/docs/..%2f..%2fpackage.json", { as: null })).status, 404);
});

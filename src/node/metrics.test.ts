import assert from "node:assert/strict";
import test from "node:test";
import { Gauge } from "prom-client";
import { createSharedImage } from "../image/shared.ts";
import { createMetrics } from "./metrics.ts";
import { createNodeStatus } from "./status.ts";

test("a hundred who ask at once have the figures gathered twice, and each has those of after it asked", async () => {
  const { registry, read } = createMetrics(createSharedImage(1), createNodeStatus(["control"]), "test");
  let gathered = 0;
  let figure = 1;
  new Gauge({
    name: "planted",
    help: "Of this test.",
    registers: [registry],
    collect() {
      gathered += 1;
      this.set(figure);
    },
  });
  const first = read();
  figure = 2;
  const others = Array.from({ length: 99 }, read);
  assert.match((await first).text, /^planted 1$/m);
  for (const { text } of await Promise.all(others)) assert.match(text, /^planted 2$/m);
  assert.equal(gathered, 2);
  figure = 3;
  assert.match((await read()).text, /^planted 3$/m);
});

test("a gathering that fails is nobody else's failure", async () => {
  const { registry, read } = createMetrics(createSharedImage(1), createNodeStatus(["control"]), "test");
  let gathered = 0;
  new Gauge({
    name: "planted",
    help: "Of this test.",
    registers: [registry],
    collect() {
      gathered += 1;
      if (gathered === 1) throw new Error("planted");
      this.set(1);
    },
  });
  const first = read();
  const second = read();
  await assert.rejects(first, /planted/);
  assert.match((await second).text, /^planted 1$/m);
});

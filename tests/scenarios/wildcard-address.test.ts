import assert from "node:assert/strict";
import { test } from "node:test";
import { dig } from "./dig.ts";
import { startNode } from "./running-node.ts";

test("answers leave from the address that was asked, also from a wildcard listener", async () => {
  await using node = await startNode({ listen: "0.0.0.0:0,[::]:0" });
  const [v4, v6] = node.dns;
  assert.ok(v4 !== undefined && v6 !== undefined);
  // dig refuses an answer that comes from another address than it asked.
  for (const address of ["127.0.0.1", "127.0.0.2", "127.1.2.3"]) {
    assert.match(await dig({ address, port: v4.port }, "example.test", "SOA", "+notcp"), /^ns1\.example\.test\. /);
  }
  assert.match(await dig({ address: "::1", port: v6.port }, "example.test", "SOA", "+notcp"), /^ns1\.example\.test\. /);
});

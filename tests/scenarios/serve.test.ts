import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dig } from "./dig.ts";
import { startNode } from "./running-node.ts";

for (const udp of ["batch", "dgram"]) {
  test(`serves a zone file over UDP and TCP, IPv4 and IPv6, on every listener (${udp})`, async () => {
    await using node = await startNode({
      listen: "127.0.0.1:0,[::1]:0,127.0.0.2:0",
      env: { SVC_DNS_UDP: udp, SVC_DNS_THREADS: "2" },
    });
    assert.equal(node.dns.length, 3);
    for (const endpoint of node.dns) {
      for (const transport of ["+notcp", "+tcp"]) {
        const answer = await dig(endpoint, "www.example.test", "A", transport);
        assert.deepEqual(answer.split("\n").sort(), ["192.0.2.80", "192.0.2.81"], `${endpoint.address} ${transport}`);
      }
    }
  });
}

test("says what it serves, where, and how to ask it", async () => {
  await using node = await startNode();
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.notEqual(endpoint.port, 0);
  const messages = node.messages();
  assert.ok(messages.includes(`DNS on 127.0.0.1:${endpoint.port}, UDP and TCP`));
  assert.ok(messages.includes("serves zone example.test."));
  assert.ok(messages.includes(`try: dig @127.0.0.1 -p ${endpoint.port} example.test. SOA`));
});

test("answers its configured name to id.server", async () => {
  await using node = await startNode({ env: { SVC_NODE_ID: "node-one" } });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.equal(await dig(endpoint, "id.server", "TXT", "CH"), '"node-one"');
});

test("a zone file of relative names is served under the name that it is given", async () => {
  const file = join(tmpdir(), `signpost-relative-${process.pid}.zone`);
  await writeFile(file, "@ 300 SOA ns1 host 7 2 3 4 5\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n");
  await using node = await startNode({ zones: [`given.test=${file}`] });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  assert.equal(await dig(endpoint, "ns1.given.test", "A"), "192.0.2.1");
  await rm(file);
});

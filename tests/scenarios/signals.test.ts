import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { openTcpClient, openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import { startNode } from "./running-node.ts";

const QUERY = encodeQuery({ name: "www.example.test", type: 1 });

/** Several times what the node gives itself; what holds it up would do so for longer. */
const ENDS_WITHIN_MS = 20_000;

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} ends the node with exit code 0`, async () => {
    await using node = await startNode();
    const begin = performance.now();
    process.kill(node.child.pid, signal);
    assert.deepEqual(await node.child.exited, { code: 0, signal: null });
    assert.ok(performance.now() - begin < ENDS_WITHIN_MS);
    assert.ok(node.messages().includes("stopped"));
  });
}

test("what was asked before SIGTERM is answered, over UDP and TCP", async () => {
  await using node = await startNode();
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const udp = await openUdpClient(endpoint);
  const tcp = await openTcpClient(endpoint);
  await tcp.ask(QUERY);
  const asked = Array.from({ length: 100 }, () => [udp.ask(QUERY), tcp.ask(QUERY)]).flat();
  await new Promise((resolve) => setImmediate(resolve));
  process.kill(node.child.pid, "SIGTERM");
  const answers = await Promise.all(asked);
  assert.equal(answers.filter((answer) => answer === undefined).length, 0);
  assert.deepEqual(await node.child.exited, { code: 0, signal: null });
  udp.close();
  tcp.close();
});

test("a request to the API that is under way when SIGTERM comes is answered, and what it wrote is there", async () => {
  await using node = await startNode();
  await using client = await signIn(node.api);
  const body = { username: "late", password: "password of a late user", role: "readonly" };
  // Hashing the password takes long enough for the signal to come in between.
  const asked = client.ask("POST", "/users", body);
  await waitFor("the request is under way", 5_000, async () => {
    const metrics = await (await node.get("/metrics")).text();
    return /^svc_api_requests_under_way [1-9]/m.test(metrics) || /route="\/api\/v1\/users",status="2xx"/.test(metrics);
  });
  process.kill(node.child.pid, "SIGTERM");
  assert.equal((await asked).status, 200);
  assert.deepEqual(await node.child.exited, { code: 0, signal: null });
});

test("a connection that sends half a message does not hold up the end", async () => {
  await using node = await startNode();
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const socket = connect({ host: endpoint.address, port: endpoint.port });
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(Uint8Array.of(0, 40, 1, 2));
  await waitFor("the connection is open", 5_000, async () => {
    const metrics = await (await node.get("/metrics")).text();
    return metrics.includes("svc_dns_connections_open 1");
  });
  const begin = performance.now();
  process.kill(node.child.pid, "SIGTERM");
  assert.deepEqual(await node.child.exited, { code: 0, signal: null });
  assert.ok(performance.now() - begin < ENDS_WITHIN_MS);
});

test("a second signal ends the node at once", async () => {
  await using node = await startNode();
  const { hostname, port } = new URL(node.api);
  const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  // The rest of the body never comes: the end waits for it, seconds long, and the second signal finds it waiting.
  const head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nX-SVC-CSRF: 1\r\nContent-Type: application/json\r\n";
  socket.write(`${head}Content-Length: 10\r\n\r\n{`);
  await waitFor("the request is under way", 5_000, async () => {
    return /^svc_api_requests_under_way 1$/m.test(await (await node.get("/metrics")).text());
  });
  process.kill(node.child.pid, "SIGTERM");
  await waitFor("the first signal is taken", 5_000, () => node.messages().some((text) => text.startsWith("SIGTERM")));
  process.kill(node.child.pid, "SIGTERM");
  assert.deepEqual(await node.child.exited, { code: 1, signal: null });
  assert.ok(!node.messages().includes("stopped"));
});

import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import fc from "fast-check";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { requireProgram } from "../../tests/support/peers.ts";
import { startChild } from "../../tests/support/process.ts";
import { describeNode, labNode, playPeer, ROOT } from "../../tests/support/stream-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { encodeHello } from "./identity.ts";
import { FRAME } from "./peers-wire.ts";
import { createStreamTls, type HandshakeFault, replicationKey } from "./tls.ts";

const KEY_LINES = "a node has another replication.encrypt_key than this one: nothing is exchanged with it";

test("each purpose has a key of its own, and a root is 32 bytes", () => {
  assert.notDeepEqual(replicationKey(ROOT, "stream"), replicationKey(ROOT, "identity"));
  assert.notDeepEqual(replicationKey(ROOT, "stream"), ROOT);
  assert.throws(() => replicationKey(new Uint8Array(16), "stream"), RangeError);
});

test("nodes of another key end in the handshake, and both say so once, with no secret", async () => {
  const root = new Uint8Array(32).fill(8);
  await using one = await labNode("n1");
  await using two = await labNode("n2", { root });
  one.peers.setPeers([two.address]);
  await waitFor("a second attempt", 5_000, () => one.peers.figures().failures.key >= 2);
  await waitFor("the other side", 5_000, () => two.peers.figures().failures.key >= 2);
  for (const { lines, peers, outgoing, incoming } of [one, two]) {
    assert.deepEqual([outgoing.length, incoming.length, peers.figures().bytesIn], [0, 0, 0]);
    assert.deepEqual(
      lines.map(({ level, message }) => `${level} ${message}`),
      [`warn ${KEY_LINES}`],
    );
    for (const secret of [ROOT, root, replicationKey(ROOT, "stream"), replicationKey(root, "stream")]) {
      assert.ok(!JSON.stringify(lines).includes(Buffer.from(secret).toString("hex")));
    }
  }
  assert.equal(one.lines[0]?.fields.node, "n2");
  assert.equal(two.lines[0]?.fields.address, "127.0.0.1");
});

/** What `openssl s_client` says; it ends when the node ends the connection, or at the end of its input. */
async function sClient(port: number, ...words: readonly string[]): Promise<string> {
  const child = await startChild("openssl", "openssl", ["s_client", "-connect", `127.0.0.1:${port}`, ...words]);
  await child.exited;
  return child.output();
}

test("openssl gets nowhere without the key, with another, or in an older TLS", async (t: TestContext) => {
  if (requireProgram(t, "openssl") === undefined) return;
  await using node = await labNode("n1");
  const { port } = node.address.endpoint;
  const identity = ["-psk_identity", "signpost replication 1"];
  const right = ["-psk", Buffer.from(replicationKey(ROOT, "stream")).toString("hex"), ...identity];
  assert.match(await sClient(port), /alert handshake failure/);
  assert.match(await sClient(port, "-psk", "00".repeat(32), ...identity), /alert decrypt error/);
  assert.match(await sClient(port, ...right.slice(0, 2), "-psk_identity", "somebody"), /alert handshake failure/);
  assert.match(await sClient(port, "-tls1_2"), /alert protocol version/);
  assert.match(
    await sClient(port, ...right, "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"),
    /alert handshake failure/,
  );
  assert.equal(node.peers.figures().failures.key, 1);
  assert.equal(node.peers.figures().failures.tls, 4);
  // With the key it is let in, to be asked who it is.
  assert.match(await sClient(port, ...right), /Reused, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256/);
});

test("a session that was opened with the key opens nothing without it", async () => {
  await using node = await labNode("n1");
  const player = await playPeer(node);
  const session = await new Promise<Buffer>((resolve) => player.socket.once("session", resolve));
  player.wire.destroy();
  const error = await new Promise<Error | undefined>((resolve) => {
    const again = connectTls({
      host: "127.0.0.1",
      port: node.address.endpoint.port,
      session,
      rejectUnauthorized: false,
    });
    again.once("secureConnect", () => resolve(undefined));
    again.once("error", resolve);
  });
  assert.match(error?.message ?? "it was let in", /alert handshake failure/);
});

test("a server with a certificate is no node, and is told nothing", async () => {
  const { cert, key } = makeCertificate({ commonName: "127.0.0.1", names: ["127.0.0.1"], isAuthority: true });
  let received = 0;
  const server = createTlsServer({ cert, key }, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received += chunk.length;
    });
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  const fault = await new Promise<HandshakeFault | string>((resolve) => {
    const onSecure = () => resolve("secure");
    createStreamTls(ROOT).dial(
      { host: "127.0.0.1", port: bound.port },
      { onSecure, onFault: resolve, onGone: () => {} },
    );
  });
  server.close();
  assert.ok(typeof fault === "object" && fault.kind === "tls", JSON.stringify(fault));
  assert.equal(received, 0);
});

test("a hello from one connection is worth nothing on another, nor is one's own sent back", async () => {
  await using node = await labNode("n1");
  const first = await playPeer(node);
  const hello = encodeHello(
    { ...describeNode("n2"), versions: { least: 1, greatest: 1 }, wallMs: 1 },
    first.keys,
    "dialer",
  );
  const second = await playPeer(node);
  second.wire.send(FRAME.HELLO, hello);
  await waitFor("a refusal", 5_000, () => second.frames.length === 1);
  assert.equal(second.frames[0]?.kind, FRAME.REFUSED);
  assert.equal(node.peers.figures().failures.proof, 1);
  first.wire.send(FRAME.HELLO, hello);
  await waitFor("a hello", 5_000, () => first.frames.length === 1);
  assert.equal(first.frames[0]?.kind, FRAME.HELLO, "on its own connection it is taken");
  const third = await playPeer(node);
  third.wire.send(FRAME.HELLO, first.frames[0]?.body ?? Buffer.of());
  await waitFor("a refusal", 5_000, () => third.frames.length === 1);
  assert.equal(node.peers.figures().failures.proof, 2);
  assert.equal(node.incoming.length, 0);
  for (const { wire } of [first, second, third]) wire.destroy();
});

test("what follows a hello too early ends the connection", async () => {
  await using node = await labNode("n1");
  const player = await playPeer(node);
  player.wire.send(FRAME.MESSAGE, Buffer.from("before I say who I am"));
  await waitFor("the end", 5_000, () => player.ended);
  const other = await playPeer(node);
  other.wire.send(FRAME.HELLO, Buffer.alloc(20_000));
  await waitFor("the end", 5_000, () => other.ended);
  assert.equal(node.peers.figures().failures.malformed, 2);
});

test("whatever bytes come in place of a hello, the connection ends and the node goes on", async () => {
  await using node = await labNode("n1");
  const property = fc.asyncProperty(fc.uint8Array({ minLength: 5, maxLength: 100 }), async (bytes) => {
    const player = await playPeer(node);
    player.socket.end(bytes);
    await waitFor("the end", 5_000, () => player.socket.destroyed, 1);
  });
  await fc.assert(property, { numRuns: 30 });
  await using other = await labNode("n2");
  other.peers.setPeers([node.address]);
  await waitFor("a stream", 5_000, () => node.incoming.length === 1);
  assert.equal(node.peers.figures().opened, 1);
});

test("connections that end or talk nonsense within the handshake are counted, and leave nothing behind", async () => {
  await using node = await labNode("n1");
  const { port } = node.address.endpoint;
  const nonsense = connect(port, "127.0.0.1");
  nonsense.on("error", () => {});
  nonsense.write(Buffer.of(0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5));
  const shortLived = connect(port, "127.0.0.1");
  shortLived.on("error", () => {});
  shortLived.end(Buffer.of(0x16, 3, 1, 2, 0, 1));
  const reset = connect(port, "127.0.0.1", () => {
    reset.write(Buffer.of(0x16), () => reset.resetAndDestroy());
  });
  reset.on("error", () => {});
  const failed = () => Object.values(node.peers.figures().failures).reduce((sum, count) => sum + count, 0);
  await waitFor("two failures or more", 5_000, () => failed() >= 2 && node.accepted.size === 0);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { type HttpsLab, makeIdentity, openHttpsLab } from "../../tests/support/https-lab.ts";
import { ACTION, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER } from "../image/counters.ts";

function framed(query: Buffer): Buffer {
  return Buffer.concat([Buffer.of(query.length >> 8, query.length & 255), query]);
}

/** Sends queries over DoT and gives the answers, in the order of their ids. */
async function askAll(socket: TLSSocket, queries: readonly Buffer[]): Promise<Buffer[]> {
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.write(Buffer.concat(queries.map(framed)));
  return await waitFor("all answers", 5_000, () => {
    const answers: Buffer[] = [];
    for (let at = 0; at + 2 <= received.length; at += 2 + received.readUInt16BE(at)) {
      answers.push(received.subarray(at + 2, at + 2 + received.readUInt16BE(at)));
    }
    return answers.length === queries.length ? answers : undefined;
  });
}

function openTcp(lab: HttpsLab): Socket {
  const socket = connectTcp(lab.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  return socket;
}

test("DoT: pipelined queries are answered, the client's address known", async () => {
  await using lab = await openHttpsLab({ kind: "dot" });
  const socket = await lab.connect();
  assert.equal(socket.alpnProtocol, "dot");
  const queries = Array.from({ length: 300 }, (_, id) => testQuery(id, ACTION.ECHO));
  const answers = await askAll(socket, queries);
  for (const [id, answer] of answers.entries()) {
    assert.deepEqual([...answer], [...testQuery(id, ACTION.ECHO), 127, 0, 0, 1]);
  }
});

test("DoT without ALPN is spoken, another protocol is refused", async () => {
  await using lab = await openHttpsLab({ kind: "dot" });
  const [answer] = await askAll(await lab.connect({ ALPNProtocols: [] }), [testQuery(1, ACTION.ECHO)]);
  assert.equal(answer?.length, 7);
  const refused = await lab.connect({ ALPNProtocols: ["h2"] });
  assert.ok(refused.destroyed);
  assert.equal(lab.counter(COUNTER.HANDSHAKES_FAILED), 1);
});

test("TLS 1.2 and 1.3 are spoken, TLS 1.1 is not", async () => {
  await using lab = await openHttpsLab({ kind: "dot" });
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    const socket = await lab.connect({ minVersion: version, maxVersion: version });
    assert.equal(socket.getProtocol(), version);
  }
  const old = await lab.connect({ minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" });
  assert.ok(old.destroyed || old.getProtocol() === null);
  await waitFor("it is counted", 5_000, () => lab.counter(COUNTER.HANDSHAKES_FAILED) === 1);
});

test("handshakes that are none, or never end, are cut and counted", async () => {
  await using lab = await openHttpsLab({ kind: "dot", secureLimits: { handshakeMs: 100 } });
  const garbage = openTcp(lab);
  const silent = openTcp(lab);
  garbage.write("GET / HTTP/1.1\r\n\r\n");
  await Promise.all([once(garbage, "close"), once(silent, "close")]);
  await waitFor("both are counted", 5_000, () => lab.counter(COUNTER.HANDSHAKES_FAILED) === 2);
  await waitFor("nothing is left of them", 5_000, () => lab.counter(COUNTER.SECURE_OPEN) === 0);
  assert.equal((await askAll(await lab.connect(), [testQuery(1, ACTION.ECHO)])).length, 1);
});

test("one client has as many connections as it may have, those in their handshake among them", async () => {
  await using lab = await openHttpsLab({ kind: "dot", secureLimits: { maxConnectionsPerClient: 2 } });
  const first = openTcp(lab);
  await waitFor("it is counted", 5_000, () => lab.counter(COUNTER.SECURE_OPEN) === 1);
  const second = await lab.connect();
  const third = await lab.connect();
  assert.ok(third.destroyed);
  assert.equal(lab.counter(COUNTER.SECURE_REFUSED), 1);
  first.destroy();
  await waitFor("it has gone", 5_000, () => lab.counter(COUNTER.SECURE_OPEN) === 1);
  const fourth = await lab.connect();
  assert.equal((await askAll(fourth, [testQuery(1, ACTION.ECHO)])).length, 1);
  assert.equal((await askAll(second, [testQuery(1, ACTION.ECHO)])).length, 1);
});

test("another certificate is for those who come, and cuts nobody", async () => {
  await using lab = await openHttpsLab({ kind: "dot" });
  const before = await lab.connect();
  lab.server.setIdentity(makeIdentity("other.test"));
  const after = await lab.connect();
  assert.match(before.getPeerCertificate().subjectaltname ?? "", /localhost/);
  assert.match(after.getPeerCertificate().subjectaltname ?? "", /other\.test/);
  assert.equal((await askAll(before, [testQuery(1, ACTION.ECHO)])).length, 1);
});

test("a listener that is given up takes nobody in, and ends those that it has", async () => {
  await using lab = await openHttpsLab({ kind: "dot" });
  const socket = await lab.connect();
  assert.equal(lab.counter(COUNTER.SECURE_LISTENING), 1);
  lab.server.retire();
  assert.equal(lab.counter(COUNTER.SECURE_LISTENING), 0);
  assert.ok((await lab.connect()).destroyed);
  await waitFor("the connection is ended", 5_000, () => socket.destroyed);
});

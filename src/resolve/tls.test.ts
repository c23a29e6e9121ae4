import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { openExchangeLab, outcomeText, questionFor, serverAt } from "../../tests/support/exchange-lab.ts";
import { freePort } from "../../tests/support/ports.ts";
import type { AnswerReply } from "../../tests/support/scripted-replies.ts";
import { startScriptedUpstream } from "../../tests/support/scripted-upstream.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { findOption } from "../dns/edns.ts";

const authority = makeCertificate({ commonName: "Test authority", isAuthority: true });
const leaf = makeCertificate({ commonName: "dns", names: ["dns.example", "127.0.0.1"], issuer: authority });
const RIGHT: AnswerReply = { kind: "answer", text: "www.example.test. 60 A 192.0.2.1" };
const WWW = questionFor("www.example.test.", 1, { cookies: true, caseRandomization: true });

test("a certificate for the name or the address is accepted, and the query padded", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => RIGHT, tls: leaf });
  using lab = openExchangeLab({ ca: authority.cert });
  const byName = await lab.ask(serverAt("127.0.0.1", upstream.tlsPort, { tlsName: "dns.example" }), WWW);
  assert.equal(outcomeText(byName), "192.0.2.1");
  assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", upstream.tlsPort, {}), WWW)), "192.0.2.1");
  for (const query of upstream.queries) {
    assert.equal(query.transport, "tls");
    assert.equal(query.bytes.length % 128, 0);
    assert.ok(findOption(query.message.edns, 12) !== undefined);
    assert.equal(query.cookie, undefined);
  }
});

test("another name, another authority and an old certificate are refused, and nothing is sent", async () => {
  const old = makeCertificate({ commonName: "dns", names: ["dns.example"], issuer: authority, fromMs: 0, toMs: 1_000 });
  for (const [tls, tlsName, ca] of [
    [leaf, "other.example", authority.cert],
    [leaf, "dns.example", undefined],
    [old, "dns.example", authority.cert],
  ] as const) {
    await using upstream = await startScriptedUpstream({ handler: () => RIGHT, tls });
    using lab = openExchangeLab(ca === undefined ? {} : { ca });
    const asked = await lab.ask(serverAt("127.0.0.1", upstream.tlsPort, { tlsName }), WWW);
    assert.equal(outcomeText(asked), "tls");
    assert.equal(upstream.queries.length, 0);
  }
});

test("a server without TLS is a TLS fault, one that is not there a network fault; never is plain text sent", async () => {
  const heard: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on("data", (chunk: Buffer) => {
      heard.push(chunk);
      socket.end("this is no TLS");
    });
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : 0;
  using lab = openExchangeLab({ ca: authority.cert });
  assert.equal(outcomeText(await lab.ask(serverAt("127.0.0.1", port, { tlsName: "dns.example" }), WWW)), "tls");
  // A record of type handshake (RFC 8446 section 5.1).
  assert.ok(heard.length > 0 && heard[0]?.[0] === 22);
  server.close();
  const nobody = serverAt("127.0.0.1", await freePort(), { tlsName: "dns.example" });
  assert.equal(outcomeText(await lab.ask(nobody, WWW)), "network");
});

test("authorities that cannot be read are a TLS fault", async () => {
  await using upstream = await startScriptedUpstream({ handler: () => RIGHT, tls: leaf });
  using lab = openExchangeLab({ ca: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" });
  const asked = await lab.ask(serverAt("127.0.0.1", upstream.tlsPort, { tlsName: "dns.example" }), WWW);
  assert.equal(outcomeText(asked), "tls");
});

test("questions share a connection, and answers come in any order", async () => {
  await using upstream = await startScriptedUpstream({
    handler: ({ name }) => ({
      kind: "answer",
      text: `${name} 60 A 192.0.2.${name.length}`,
      delayMs: name.startsWith("slow") ? 1_000 : 0,
    }),
    tls: leaf,
  });
  using lab = openExchangeLab({ ca: authority.cert });
  const server = serverAt("127.0.0.1", upstream.tlsPort, { tlsName: "dns.example" });
  const order: string[] = [];
  const ask = async (name: string) => {
    const asked = await lab.ask(server, questionFor(name));
    assert.equal(outcomeText(asked), `192.0.2.${name.length}`);
    order.push(name);
  };
  await Promise.all([ask("slow.example.test."), ...Array.from({ length: 40 }, (_, index) => ask(`h${index}.test.`))]);
  assert.equal(order.at(-1), "slow.example.test.");
  assert.equal(upstream.connections().accepted, 1);
});

test("a connection that the server ended is opened anew for the next question", async () => {
  await using upstream = await startScriptedUpstream({
    handler: ({ ordinal }) => (ordinal === 0 ? [RIGHT, { kind: "close", delayMs: 5 }] : { kind: "silence" }),
    tls: leaf,
  });
  using lab = openExchangeLab({ ca: authority.cert });
  const server = serverAt("127.0.0.1", upstream.tlsPort, { tlsName: "dns.example" });
  for (let each = 0; each < 3; each++) {
    assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
    await waitFor("the end", 5_000, () => lab.tls.connections() === 0);
  }
  assert.equal(upstream.connections().accepted, 3);
});

test("a silent connection is given up with its question, and a question behind it has another", async () => {
  await using upstream = await startScriptedUpstream({
    handler: ({ connection }) => (connection === 0 ? { kind: "silence" } : RIGHT),
    tls: leaf,
  });
  using lab = openExchangeLab({ ca: authority.cert });
  const server = serverAt("127.0.0.1", upstream.tlsPort, { tlsName: "dns.example" });
  assert.equal(outcomeText(await lab.ask(server, WWW, 300)), "timeout");
  assert.equal(lab.tls.connections(), 0);
  assert.equal(outcomeText(await lab.ask(server, WWW)), "192.0.2.1");
});

/** Signatures of ours and of others: BIND and Knot as servers of ours, dig, kdig, nsupdate and knsupdate as clients. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CLASS, FLAG, OPCODE, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery, type ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText } from "../../src/dns/name.ts";
import { rdataFromText } from "../../src/dns/rdata.ts";
import { signRequest, TSIG_ERROR, type TsigKey, type TsigResponse, verifyResponse } from "../../src/dns/tsig.ts";
import type { TsigAlgorithm } from "../../src/dns/tsig-algorithms.ts";
import { appendTsig, findTsig } from "../../src/dns/tsig-record.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd, startChild } from "../support/process.ts";
import { type RunningServer, type ServerProgram, startServer } from "../support/server.ts";
import { bindWith, keyText, knotWith, type SigningServer, secretText, startSigningServer } from "./tsig-peers.ts";

const ALGORITHMS: readonly TsigAlgorithm[] = [
  ...(["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const),
  ...(["hmac-sha224", "hmac-sha1", "hmac-md5"] as const),
];
const ZONE = "signed.test";
const RECORDS = 5_000;
const PROGRAM_MS = 60_000;

function name(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(`${text}: ${result.reason}`);
}

const KEYS: readonly TsigKey[] = ALGORITHMS.map((algorithm, index) => ({
  name: name(`key-${algorithm}.`),
  algorithm,
  secret: Buffer.alloc(16 + index * 20, `secret-of-${algorithm}`),
}));
const KEY = KEYS[0]!;

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function soaQuery(id: number): Uint8Array {
  return encodeMessage(makeQuery(id, name(`${ZONE}.`), RRTYPE.SOA)).bytes;
}

async function startPrimary(program: ServerProgram): Promise<RunningServer> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-tsig-"));
  const file = join(directory, "zone");
  const lines = [
    `$ORIGIN ${ZONE}.`,
    "$TTL 300",
    "@ SOA ns1 hostmaster 1 7200 900 1209600 300",
    "@ NS ns1",
    "ns1 A 192.0.2.1",
    ...Array.from({ length: RECORDS }, (_, index) => `t${index} TXT "the text of record ${index}, and more of it"`),
  ];
  await writeFile(file, `${lines.join("\n")}\n`);
  try {
    return await startServer(program, { zones: [{ name: ZONE, file }] });
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Sends these bytes over UDP as they are, but with the id that the client gives them: no signature covers it. */
async function ask(server: RunningServer, bytes: Uint8Array): Promise<Buffer> {
  return (await exchangeUdp({ port: server.port }, bytes)) ?? assert.fail(`${server.name} is silent`);
}

function reason(outcome: TsigResponse): string {
  return outcome.kind === "failed" ? `${outcome.reason} ${outcome.error} ${outcome.isAuthentic}` : outcome.kind;
}

/** The answer to AXFR over TCP, message by message, until the second SOA. */
async function transfer(port: number, query: Uint8Array): Promise<readonly Buffer[]> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  socket.write(Buffer.concat([Uint8Array.of(query.length >> 8, query.length & 0xff), query]));
  const messages: Buffer[] = [];
  let buffered = Buffer.alloc(0);
  let soaCount = 0;
  for await (const chunk of socket) {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const end = 2 + buffered.readUInt16BE(0);
      const bytes = Buffer.from(buffered.subarray(2, end));
      messages.push(bytes);
      const decoded = decodeMessage(bytes);
      assert.ok(decoded.kind === "message");
      assert.equal(decoded.message.rcode, RCODE.NOERROR);
      soaCount += decoded.message.answers.filter(({ type }) => type === RRTYPE.SOA).length;
      buffered = buffered.subarray(end);
    }
    if (soaCount === 2) break;
  }
  assert.equal(soaCount, 2);
  return messages;
}

for (const program of [bindWith(KEYS), knotWith(KEYS)]) {
  test(`${program.name} takes our signatures, and its own verify: answers, transfers and errors`, async (t) => {
    if (requireProgram(t, program.command) === undefined) return;
    await using server = await startPrimary(program);
    for (const key of KEYS) {
      const sent = signRequest(key, soaQuery(1), nowSeconds());
      const answer = await ask(server, sent.bytes);
      const outcome = verifyResponse(answer, key, sent.mac, nowSeconds());
      assert.equal(reason(outcome), "verified", key.algorithm);
      const decoded = decodeMessage(outcome.kind === "verified" ? outcome.bytes : new Uint8Array(0));
      assert.ok(decoded.kind === "message");
      assert.deepEqual([decoded.message.rcode, decoded.message.answers.length], [RCODE.NOERROR, 1]);
      // The same answer to another request.
      const other = signRequest(key, soaQuery(2), nowSeconds());
      assert.match(reason(verifyResponse(answer, key, other.mac, nowSeconds())), /^signature 0/);
    }
    for (const key of KEYS) {
      const axfr = encodeMessage(makeQuery(7, name(`${ZONE}.`), RRTYPE.AXFR)).bytes;
      const sent = signRequest(key, axfr, nowSeconds());
      const messages = await transfer(server.port, sent.bytes);
      assert.ok(messages.length > 2, `${messages.length} messages`);
      let priorMac = sent.mac;
      for (const [index, bytes] of messages.entries()) {
        const outcome = verifyResponse(bytes, key, priorMac, nowSeconds(), index > 0);
        assert.equal(reason(outcome), "verified", `${key.algorithm}, message ${index}`);
        if (outcome.kind === "verified") priorMac = outcome.mac;
      }
    }
    // What it makes of our errors is what we make of its: the verdicts of both sides are the RFC's.
    const wrong = signRequest({ ...KEY, secret: Buffer.alloc(32) }, soaQuery(3), nowSeconds());
    const unknown = signRequest({ ...KEY, name: name("nobody.") }, soaQuery(4), nowSeconds());
    const late = signRequest(KEY, soaQuery(5), nowSeconds() - 4_000);
    const verdictOn = async (sent: typeof late, key: TsigKey) =>
      reason(verifyResponse(await ask(server, sent.bytes), key, sent.mac, nowSeconds() - 4_000));
    assert.equal(await verdictOn(wrong, KEY), `error ${TSIG_ERROR.BADSIG} false`);
    assert.equal(await verdictOn(unknown, { ...KEY, name: name("nobody.") }), `error ${TSIG_ERROR.BADKEY} false`);
    assert.equal(await verdictOn(late, KEY), `error ${TSIG_ERROR.BADTIME} true`);
    const place = findTsig(signRequest(KEY, soaQuery(6), nowSeconds()).bytes);
    assert.ok(place.kind === "record");
    const short = appendTsig(soaQuery(6), { ...place.record, mac: place.record.mac.slice(0, 9) });
    // Knot finds it wrong rather than malformed.
    const expected = program.name === "bind" ? RCODE.FORMERR : RCODE.NOTAUTH;
    assert.equal((await ask(server, short)).readUInt8(3) & 15, expected);
  });
}

function record(owner: string, type: number, text: string): ResourceRecord {
  const result = rdataFromText(type, text);
  if (result.kind === "error") return assert.fail(result.detail);
  return { name: name(owner), type, class: CLASS.IN, ttl: 300, rdata: result.rdata };
}

const SOA = record(`${ZONE}.`, RRTYPE.SOA, `ns1.${ZONE}. hostmaster.${ZONE}. 1 7200 900 1209600 300`);

/** A transfer is four messages, an update succeeds, and everything else has one TXT record. */
function answersTo(bytes: Uint8Array): readonly Uint8Array[] {
  const decoded = decodeMessage(bytes);
  if (decoded.kind === "error") return assert.fail(decoded.reason);
  const { message } = decoded;
  const reply: Message = { ...message, flags: FLAG.QR | FLAG.AA, authorities: [], additionals: [], edns: undefined };
  const asked = message.questions[0];
  const texts = (...all: readonly ResourceRecord[]) => encodeMessage({ ...reply, answers: all }).bytes;
  if (message.opcode === OPCODE.UPDATE) return [texts()];
  const text = (label: string) => record(`${label}.${ZONE}.`, RRTYPE.TXT, `"text of ${label}"`);
  if (asked?.type !== RRTYPE.AXFR) return [texts(text("only"))];
  return [texts(SOA), texts(text("a"), text("b")), texts(text("c")), texts(SOA)];
}

function forged(key: TsigKey): TsigKey {
  return { ...key, secret: Buffer.alloc(32) };
}

/** Output of a program with whatever exit code. */
async function outputOf(command: string, args: readonly string[]): Promise<string> {
  const child = await startChild(command, command, args);
  await child.exited;
  return child.output();
}

function digArguments(program: string, port: number, key: TsigKey, question: readonly string[]): readonly string[] {
  const once = program === "dig" ? ["+tries=1", "+timeout=20"] : ["+retry=0", "+timeout=20"];
  const signature = `${key.algorithm}:${keyText(key)}:${secretText(key)}`;
  return ["@127.0.0.1", "-p", String(port), ...once, "-y", signature, ...question];
}

function last(server: SigningServer): string {
  return server.verdicts.at(-1) ?? assert.fail("nothing came");
}

/** What each says of an answer whose signature is wrong. */
const DOUBT =
  /Couldn't verify|verify failure|TSIG (verif|error|key)|BADSIG|failed to (verify|query)|bad (signature|MAC)/i;

for (const program of ["dig", "kdig"]) {
  test(`${program} signs what we verify, and verifies what we sign`, async (t) => {
    const path = requireProgram(t, program);
    if (path === undefined) return;
    await using server = await startSigningServer({ keys: KEYS, answers: answersTo });
    for (const key of KEYS) {
      const single = await outputOf(path, digArguments(program, server.port, key, [`only.${ZONE}`, "TXT"]));
      assert.equal(last(server), "verified", single);
      assert.match(single, /"text of only"/);
      assert.doesNotMatch(single, DOUBT, key.algorithm);
      const all = await outputOf(path, digArguments(program, server.port, key, [ZONE, "AXFR"]));
      assert.equal(last(server), "verified", all);
      for (const label of ["a", "b", "c"]) assert.match(all, new RegExp(`"text of ${label}"`));
      assert.equal(all.match(/\sSOA\s/g)?.length, 2, all);
      assert.doesNotMatch(all, DOUBT, key.algorithm);
    }
    // The same programs say so where a signature is wrong, in the first message and in a later one.
    await using forger = await startSigningServer({ keys: KEYS, answers: answersTo, signsWith: forged });
    assert.match(await outputOf(path, digArguments(program, forger.port, KEY, [`only.${ZONE}`, "TXT"])), DOUBT);
    assert.match(await outputOf(path, digArguments(program, forger.port, KEY, [ZONE, "AXFR"])), DOUBT);
  });

  test(`${program} shows our BADKEY, BADSIG and BADTIME`, async (t) => {
    const path = requireProgram(t, program);
    if (path === undefined) return;
    await using server = await startSigningServer({ keys: KEYS, answers: answersTo });
    await using ahead = await startSigningServer({ keys: KEYS, answers: answersTo, aheadSeconds: 1_000 });
    const question = [`only.${ZONE}`, "TXT"];
    const ofUnknown = { ...KEY, name: name("nobody.") };
    assert.match(await outputOf(path, digArguments(program, server.port, ofUnknown, question)), /BADKEY/);
    assert.equal(last(server), `9/${TSIG_ERROR.BADKEY}`);
    assert.match(await outputOf(path, digArguments(program, server.port, forged(KEY), question)), /BADSIG/);
    assert.equal(last(server), `9/${TSIG_ERROR.BADSIG}`);
    assert.match(await outputOf(path, digArguments(program, ahead.port, KEY, question)), /BADTIME/);
    assert.equal(last(ahead), `9/${TSIG_ERROR.BADTIME}`);
  });
}

/** Runs an update of one TXT record by a program; rejects where that says it failed. */
async function update(t: TestContext, path: string, port: number, key: TsigKey): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-tsig-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "commands");
  const commands = [`server 127.0.0.1 ${port}`, `zone ${ZONE}`, `update add x.${ZONE} 60 TXT "x"`, "send"];
  await writeFile(file, `${commands.join("\n")}\n`);
  const signature = `${key.algorithm}:${keyText(key)}:${secretText(key)}`;
  return await runToEnd(path, ["-y", signature, "-t", "20", "-r", "0", file], PROGRAM_MS);
}

for (const program of ["nsupdate", "knsupdate"]) {
  test(`${program} signs what we verify, and verifies what we sign`, async (t) => {
    const path = requireProgram(t, program);
    if (path === undefined) return;
    await using server = await startSigningServer({ keys: KEYS, answers: answersTo });
    for (const key of KEYS) {
      await update(t, path, server.port, key);
      assert.equal(last(server), "verified", key.algorithm);
    }
    await using forger = await startSigningServer({ keys: KEYS, answers: answersTo, signsWith: forged });
    await assert.rejects(update(t, path, forger.port, KEY));
    assert.equal(last(forger), "verified");
    await assert.rejects(update(t, path, server.port, forged(KEY)), /BADSIG/);
    await assert.rejects(update(t, path, server.port, { ...KEY, name: name("nobody.") }), /BADKEY/);
  });
}

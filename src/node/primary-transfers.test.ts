/** Transfers between connections that another thread has and `control`: what ends them besides their end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "../../tests/support/notify-lab.ts";
import { decode, nameOf, queryBytes } from "../../tests/support/zone-lab.ts";
import { RCODE, RRTYPE } from "../dns/codes.ts";
import { nameToText } from "../dns/name.ts";
import { TRANSPORT } from "../image/counters.ts";
import { PART, type Part } from "../listen/answer-frames.ts";
import { messageRecord, recordToken } from "../listen/handover-record.ts";
import { createTransferEncoder } from "../primary/axfr-encode.ts";
import { readTransferRequest } from "../primary/axfr-request.ts";
import { TRANSFER_ENCODE_MS, TRANSFER_ENCODINGS_MAX, TRANSFER_STALL_MS, TRANSFERS_MAX } from "../primary/limits.ts";
import type { FromPrimary } from "../primary/messages.ts";
import { createServedTransfers } from "./primary-transfers.ts";

const APEX = nameOf("corp.test.");
const QUERY = queryBytes("corp.test. AXFR", { edns: false });
const THREAD = 4;

function open() {
  const told: FromPrimary[] = [];
  const parts: { readonly token: number; readonly part: Part; readonly message: Uint8Array }[] = [];
  const noted: Uint8Array[] = [];
  const failures: string[] = [];
  const ended: string[] = [];
  const time = { nowMs: 0 };
  const transfers = createServedTransfers({
    tell: (message) => told.push(message) > 0,
    addPart: (_, record, message, part) => parts.push({ token: recordToken(record), part, message }),
    lookUpAlias: async () => undefined,
    now: () => time.nowMs,
    onAnswer: (_, message) => noted.push(message),
    onFailure: (_, detail) => failures.push(detail),
    onEnd: (_, zone, { outcome }) => ended.push(`${nameToText(zone)} ${outcome}`),
    onReady: () => {},
  });
  const begin = (token: number) => {
    // Each from an address of its own.
    const record = messageRecord(token, TRANSPORT.TCP, Uint8Array.of(127, 0, 0, token), QUERY);
    const reading = readTransferRequest(QUERY, 1232);
    assert.ok(reading.kind === "transfer");
    transfers.begin({ thread: THREAD, record, sinceMs: 0, signing: undefined }, reading.request);
  };
  const give = async (index: number, records: number) => {
    const head = { apex: APEX, ttl: 60, soa: Buffer.concat([APEX, APEX, new Uint8Array(20)]) };
    const encoder = createTransferEncoder(head);
    const txt = new Uint8Array(256).fill(0x41);
    txt[0] = 255;
    for (let count = 0; count < records; count++) encoder.add(APEX, APEX.length, RRTYPE.TXT, 60, txt);
    const transfer = { ...head, serial: 0, aliases: [], messages: encoder.finish(true) };
    const question = told[index];
    assert.ok(question?.kind === "encode");
    transfers.encoded(question.id, { kind: "zone", transfer });
    await settled();
  };
  return { transfers, told, parts, noted, failures, ended, time, begin, give };
}

test("the connection hears of it at once, and of the end; what was taken makes room", async () => {
  const { transfers, parts, noted, ended, begin, give } = open();
  begin(1);
  assert.deepEqual(
    parts.map(({ part, message }) => [part, message.length]),
    [[PART.MORE, 0]],
  );
  await give(0, 3_000);
  const sent = () => parts.reduce((sum, { message }) => sum + message.length, 0);
  const before = sent();
  transfers.flows.onTaken(THREAD, 1, before);
  assert.ok(sent() > before, "more follows");
  for (let left = sent() - before, at = sent(); left > 0; left = sent() - at, at = sent()) {
    transfers.flows.onTaken(THREAD, 1, left);
  }
  assert.deepEqual([parts.at(-1)?.part, transfers.stats().done, noted.length], [PART.LAST, 1, 1]);
  transfers.flows.onTaken(THREAD, 1, 5);
  transfers.flows.onGone(THREAD, 1);
  assert.deepEqual(
    { ...transfers.stats() },
    {
      ...{ running: 0, waiting: 0, done: 1, cut: 0, refused: 0, failed: 0, bytes: sent() },
    },
  );
  assert.deepEqual(ended, ["corp.test. done"]);
});

test("a zone that is not encoded in time, or whose encoder ends, is SERVFAIL", async () => {
  const { transfers, parts, failures, time, begin } = open();
  begin(1);
  time.nowMs = 1;
  begin(2);
  time.nowMs = TRANSFER_ENCODE_MS;
  transfers.sweep();
  await settled();
  assert.deepEqual([failures, transfers.stats().running], [["encoding it took too long"], 1]);
  transfers.failEncoding();
  await settled();
  const answers = parts.filter(({ part }) => part === PART.LAST);
  assert.deepEqual(
    answers.map(({ token, message }) => [token, decode(message).rcode]),
    [
      [1, RCODE.SERVFAIL],
      [2, RCODE.SERVFAIL],
    ],
  );
  assert.equal(transfers.stats().failed, 2);
});

test("no more is asked for than so many zones, however many clients come and go", async () => {
  const { transfers, told, parts, failures, begin } = open();
  for (let token = 0; token < TRANSFER_ENCODINGS_MAX; token++) {
    begin(token);
    transfers.flows.onGone(THREAD, token);
  }
  begin(99);
  await settled();
  assert.deepEqual([told.length, failures], [TRANSFER_ENCODINGS_MAX, ["too many are being encoded"]]);
  assert.equal(decode(parts.at(-1)?.message ?? APEX).rcode, RCODE.SERVFAIL);
});

test("a client that has gone, one that takes nothing, and a thread that begins anew make room for others", async () => {
  const { transfers, told, parts, time, begin, give } = open();
  for (let token = 0; token <= TRANSFERS_MAX; token++) begin(token);
  assert.deepEqual([told.length, transfers.stats().waiting], [TRANSFERS_MAX, 1]);
  transfers.flows.onGone(THREAD, 0);
  assert.deepEqual([told.length, transfers.stats().waiting], [TRANSFERS_MAX + 1, 0]);
  await give(1, 3_000);
  time.nowMs = TRANSFER_STALL_MS;
  transfers.sweep();
  assert.deepEqual([parts.at(-1)?.token, parts.at(-1)?.part], [1, PART.CUT]);
  transfers.flows.onBegun(THREAD + 1);
  assert.equal(transfers.stats().running, TRANSFERS_MAX - 1);
  transfers.flows.onBegun(THREAD);
  assert.deepEqual([transfers.stats().running, transfers.stats().cut], [0, TRANSFERS_MAX + 1]);
  const { length } = parts;
  await give(2, 3_000);
  assert.equal(parts.length, length, "nothing more is sent to them");
});

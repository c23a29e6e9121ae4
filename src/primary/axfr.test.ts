import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "../../tests/support/notify-lab.ts";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { CLASS, FLAG, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { createTransfers, type TransferReport, type TransfersOptions, type ZoneForTransfer } from "./axfr.ts";
import { createTransferEncoder, type TransferAlias } from "./axfr-encode.ts";
import { readTransferRequest, type TransferRequest } from "./axfr-request.ts";
import {
  TRANSFER_MS,
  TRANSFER_STALL_MS,
  TRANSFER_UNTAKEN_BYTES,
  TRANSFER_WAIT_MS,
  TRANSFERS_MAX,
  TRANSFERS_OF_CLIENT_MAX,
  TRANSFERS_WAITING_MAX,
  TRANSFERS_WAITING_OF_CLIENT_MAX,
} from "./limits.ts";

const APEX = nameOf("corp.test.");
const EDNS = { udpSize: 1232, version: 0, wantsDnssec: false, options: [] };

function decoded(bytes: Uint8Array): Message {
  const result = decodeMessage(bytes);
  assert.ok(result.kind === "message");
  return result.message;
}

function requestOf(query: Partial<Message> = {}): TransferRequest {
  const { bytes } = encodeMessage({ ...makeQuery(77, nameOf("Corp.Test."), RRTYPE.AXFR, FLAG.RD, EDNS), ...query });
  const reading = readTransferRequest(bytes, 1400);
  assert.ok(reading.kind === "transfer");
  return reading.request;
}

function zoneOf(records: number, aliases: readonly TransferAlias[] = []): ZoneForTransfer {
  const soa = Buffer.concat([APEX, APEX, new Uint8Array(20)]);
  const head = { apex: APEX, ttl: 60, soa };
  const encoder = createTransferEncoder(head);
  const txt = new Uint8Array(256).fill(0x41);
  txt[0] = 255;
  for (let count = 0; count < records; count++) encoder.add(APEX, APEX.length, RRTYPE.TXT, 60, txt);
  const messages = encoder.finish(aliases.length === 0);
  return { kind: "zone", transfer: { ...head, serial: 7, aliases, messages } };
}

function lab(given: Partial<TransfersOptions> = {}) {
  let nowMs = 0;
  const failures: string[] = [];
  const reports: TransferReport[] = [];
  const transfers = createTransfers({
    encode: async () => zoneOf(2),
    lookUpAlias: async () => undefined,
    now: () => nowMs,
    onFailure: (_zone, detail) => failures.push(detail),
    ...given,
  });
  let clients = 0;
  /** Each is another client, where it is not said which. */
  const client = (takes = true, request = requestOf(), name = `client ${clients++}`) => {
    const messages: Uint8Array[] = [];
    const state = { isCut: false, hasLast: false };
    const connection = {
      client: name,
      send: (message: Uint8Array, isLast: boolean) => {
        messages.push(message);
        state.hasLast ||= isLast;
        if (takes) setImmediate(() => handle.taken(message.length));
      },
      cut: () => {
        state.isCut = true;
      },
    };
    const handle = transfers.begin(request, undefined, connection, (report) => reports.push(report));
    return { messages, state, ...handle };
  };
  const pass = (ms: number) => {
    nowMs += ms;
    transfers.sweep();
  };
  return { transfers, client, pass, failures, reports };
}

async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 10_000 && !condition(); turn++) await settled();
  assert.ok(condition());
}

test("a client gets the messages with its id, its spelling of the question, and OPT in the first", async () => {
  const { client, transfers } = lab({ encode: async () => zoneOf(600) });
  const { messages, state } = client();
  await until(() => transfers.stats().done === 1);
  const all = messages.map(decoded);
  assert.ok(state.hasLast && all.length > 2);
  assert.ok(all.every(({ id, flags }) => id === 77 && flags === (FLAG.QR | FLAG.AA | FLAG.RD)));
  assert.equal(nameToText(all[0]?.questions[0]?.name ?? new Uint8Array(1)), "Corp.Test.");
  assert.deepEqual(
    all.map(({ edns }) => edns?.udpSize),
    [1400, ...all.slice(1).map(() => undefined)],
  );
});

const NOTHING = new Uint8Array(0);
const QUESTION = { name: APEX, type: RRTYPE.AXFR, class: CLASS.IN };
const REFUSED: readonly (readonly [why: string, query: Partial<Message>, rcode: number])[] = [
  ["two questions", { questions: [QUESTION, QUESTION] }, RCODE.FORMERR],
  ["no question", { questions: [] }, RCODE.FORMERR],
  ["another opcode", { opcode: OPCODE.NOTIFY }, RCODE.FORMERR],
  ["another class", { questions: [{ ...QUESTION, class: CLASS.CH }] }, RCODE.REFUSED],
  ["a later version of EDNS", { edns: { ...EDNS, version: 1 } }, RCODE.BADVERS],
];

for (const [why, query, rcode] of REFUSED) {
  test(`a request is refused for ${why}`, () => {
    const { bytes } = encodeMessage({ ...makeQuery(1, APEX, RRTYPE.AXFR), ...query });
    assert.deepEqual(readTransferRequest(bytes, 1232), { kind: "refused", rcode });
  });
}

test("its report has what was sent, and how long it took", async () => {
  const { client, transfers, pass, reports } = lab({ encode: async () => zoneOf(6_000) });
  const taking = client();
  await until(() => transfers.stats().done === 1);
  const bytes = taking.messages.reduce((sum, { length }) => sum + length, 0);
  const { length: messages } = taking.messages;
  const whole = { outcome: "done", messages, records: 6_002, bytes, serial: 7, milliseconds: 0 };
  const silent = client(false);
  await until(() => silent.messages.length > 0);
  pass(TRANSFER_STALL_MS);
  const some = silent.messages.map(decoded);
  const cut = {
    ...{ outcome: "stalled", messages: some.length, records: some.flatMap(({ answers }) => answers).length },
    ...{ bytes: silent.messages.reduce((sum, { length }) => sum + length, 0) },
    ...{ serial: 7, milliseconds: TRANSFER_STALL_MS },
  };
  assert.deepEqual(reports, [whole, cut]);
  assert.ok(some.length < messages);
  assert.equal(transfers.stats().bytes, whole.bytes + cut.bytes);
});

test("a request with records in sections that should be empty is a request all the same, as BIND and Knot have it", () => {
  const records = [{ name: APEX, type: RRTYPE.SOA, class: CLASS.IN, ttl: 0, rdata: new Uint8Array(22) }];
  const { id } = requestOf({ answers: records, authorities: records });
  assert.equal(id, 77);
});

test("no more is handed to a connection than its client takes", async () => {
  const { client, transfers } = lab({ encode: async () => zoneOf(6_000) });
  const slow = client(false);
  await until(() => slow.messages.length > 0);
  await settled();
  const sent = () => slow.messages.reduce((sum, { length }) => sum + length, 0);
  assert.ok(sent() >= TRANSFER_UNTAKEN_BYTES && sent() < TRANSFER_UNTAKEN_BYTES + 65_536);
  let taken = 0;
  while (!slow.state.hasLast) {
    const before = sent();
    slow.taken(before - taken);
    taken = before;
  }
  assert.equal(transfers.stats().running, 1);
  slow.taken(sent() - taken);
  assert.deepEqual(transfers.stats(), {
    ...{ running: 0, waiting: 0, done: 1, cut: 0, refused: 0, failed: 0, bytes: sent() },
  });
});

test("a client that takes nothing is cut off, and one that takes it a little at a time, in the end", async () => {
  const { client, transfers, pass } = lab({ encode: async () => zoneOf(6_000) });
  const [silent, slow] = [client(false), client(false)];
  await until(() => slow.messages.length > 0 && silent.messages.length > 0);
  for (let passed = 0; passed < TRANSFER_MS; passed += TRANSFER_STALL_MS / 2) {
    slow.taken(1);
    pass(TRANSFER_STALL_MS / 2);
    assert.equal(slow.state.isCut, passed + TRANSFER_STALL_MS / 2 >= TRANSFER_MS);
    assert.equal(silent.state.isCut, passed + TRANSFER_STALL_MS / 2 >= TRANSFER_STALL_MS);
  }
  assert.equal(transfers.stats().cut, 2);
});

test("a bounded number is served, a bounded number waits, and a place that is left is taken", async () => {
  const { client, transfers, pass, reports } = lab();
  const running = Array.from({ length: TRANSFERS_MAX }, () => client(false));
  const waiting = Array.from({ length: TRANSFERS_WAITING_MAX }, () => client(false));
  const tooMany = client(false);
  await settled();
  assert.deepEqual(
    tooMany.messages.map(decoded).map(({ rcode }) => rcode),
    [RCODE.SERVFAIL],
  );
  assert.ok(waiting.every(({ messages }) => messages.length === 0));
  running[0]?.cancel();
  await settled();
  assert.equal(waiting[0]?.messages.length, 1);
  waiting[1]?.cancel();
  running[1]?.cancel();
  await settled();
  assert.deepEqual([waiting[1]?.messages.length, waiting[2]?.messages.length], [0, 1]);
  pass(TRANSFER_WAIT_MS);
  assert.ok(waiting.slice(3).every(({ messages }) => decoded(messages[0] ?? NOTHING).rcode === RCODE.SERVFAIL));
  const { running: left, waiting: none, refused, cut } = transfers.stats();
  assert.deepEqual({ left, none, refused, cut }, { left: 10, none: 0, refused: TRANSFERS_WAITING_MAX - 2, cut: 3 });
  const nothing = { messages: 0, records: 0, bytes: 0, serial: undefined };
  assert.deepEqual(reports[0], { outcome: "too many", ...nothing, milliseconds: 0 });
  assert.deepEqual(reports.at(-1), { outcome: "too many", ...nothing, milliseconds: TRANSFER_WAIT_MS });
  assert.equal(reports.length, refused + cut);
});

test("a client that takes nothing has some of the places, and another one is served at once", async () => {
  const { client, transfers, pass } = lab();
  const most = TRANSFERS_OF_CLIENT_MAX + TRANSFERS_WAITING_OF_CLIENT_MAX;
  const silent = Array.from({ length: most + 1 }, () => client(false, requestOf(), "silent"));
  await settled();
  const { running, waiting, refused } = transfers.stats();
  assert.deepEqual([running, waiting, refused], [TRANSFERS_OF_CLIENT_MAX, TRANSFERS_WAITING_OF_CLIENT_MAX, 1]);
  const left = TRANSFERS_MAX + TRANSFERS_WAITING_MAX - most;
  for (let count = 0; count < left; count++) client(true, requestOf(), "taking");
  await until(() => transfers.stats().done === left);
  assert.equal(transfers.stats().running, TRANSFERS_OF_CLIENT_MAX);
  silent[0]?.cancel();
  await until(() => silent[TRANSFERS_OF_CLIENT_MAX]?.messages.length === 1);
  pass(TRANSFER_WAIT_MS);
  assert.deepEqual([transfers.stats().running, transfers.stats().waiting], [TRANSFERS_OF_CLIENT_MAX, 0]);
});

test("a zone that does not answer is NOTAUTH, one that cannot be encoded SERVFAIL, and both leave their place", async () => {
  const results: (() => Promise<ZoneForTransfer>)[] = [
    async () => ({ kind: "absent" }),
    async () => ({ kind: "failed", detail: "one" }),
    () => Promise.reject(new Error("two")),
  ];
  const { client, transfers, failures } = lab({ encode: () => results.shift()?.() ?? assert.fail() });
  const clients = [client(), client(), client()];
  await until(() => transfers.stats().running === 0);
  assert.deepEqual(
    clients.map(({ messages }) => messages.map((message) => decoded(message).rcode)),
    [[RCODE.NOTAUTH], [RCODE.SERVFAIL], [RCODE.SERVFAIL]],
  );
  assert.deepEqual(failures, ["one", "two"]);
  assert.equal(transfers.stats().failed, 2);
});

test("a client that goes while its zone is encoded is sent nothing", async () => {
  const { promise, resolve } = Promise.withResolvers<ZoneForTransfer>();
  const { client, transfers } = lab({ encode: () => promise });
  const gone = client();
  gone.cancel();
  assert.equal(transfers.stats().running, 0);
  resolve(zoneOf(1));
  await settled();
  assert.deepEqual(gone.messages, []);
});

test("ALIAS comes as the addresses of its target, with the smaller TTL; one that fails contributes nothing", async () => {
  const alias = (owner: string, target: string): TransferAlias => {
    return { owner: nameOf(owner), target: nameOf(target), ttl: 50 };
  };
  const aliases = [alias("a.corp.test.", "good."), alias("b.corp.test.", "bad."), alias("c.corp.test.", "good.")];
  const asked: string[] = [];
  const { client, transfers } = lab({
    encode: async () => zoneOf(1, aliases),
    lookUpAlias: async (target, type) => {
      asked.push(`${nameToText(target)} ${type}`);
      if (nameToText(target) === "bad.") throw new Error("no answer");
      const [ttl, rdata] = type === RRTYPE.A ? [20, Uint8Array.of(10, 0, 0, 1)] : [90, new Uint8Array(16)];
      return { ttl, rdatas: [rdata] };
    },
  });
  const { messages } = client();
  await until(() => transfers.stats().done === 1);
  const answers = messages.flatMap((message) => decoded(message).answers);
  assert.deepEqual(
    answers.map(({ name, type, ttl }) => `${nameToText(name).toLowerCase()} ${type} ${ttl}`),
    [
      "corp.test. 6 60",
      "corp.test. 16 60",
      "a.corp.test. 1 20",
      "a.corp.test. 28 50",
      "c.corp.test. 1 20",
      "c.corp.test. 28 50",
      "corp.test. 6 60",
    ],
  );
  assert.deepEqual(asked, ["good. 1", "good. 28", "bad. 1", "bad. 28"]);
});

/** The bounds on those who wait, with an answerer that always lacks something and a resolver that the test plays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTION, createFakeAnswerer, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, TRANSPORT, threadCounters } from "../image/counters.ts";
import { createSharedImage } from "../image/shared.ts";
import { createHandover, openHandoverInbox } from "../listen/handover.ts";
import { recordQuery, recordToken } from "../listen/handover-record.ts";
import type { Resolved } from "../resolve/resolver-types.ts";
import { CLIENT_BYTES_MAX, CLIENT_MS, CLIENT_ROUNDS_MAX, CLIENTS_MAX } from "./limits.ts";
import { createClients } from "./resolve-clients.ts";

type Options = { readonly knowsRoute?: boolean };

function open({ knowsRoute = true }: Options = {}) {
  const shared = createSharedImage(1);
  const counters = threadCounters(shared, 1);
  const handover = createHandover(shared, 0);
  const inbox = openHandoverInbox(shared, [0]);
  const asked: ((resolved: Resolved) => void)[] = [];
  const refreshed: number[] = [];
  const replies: { readonly token: number; readonly answer: Buffer }[] = [];
  const failures: Uint8Array[] = [];
  const time = { nowMs: 0, readies: 0 };
  const way = { isFull: false };
  const clients = createClients({
    answerer: createFakeAnswerer(),
    counters,
    resolver: { resolve: (_, onDone) => void asked.push(onDone), refresh: (entry) => void refreshed.push(entry) },
    position: () => 5,
    knowsRoute: () => knowsRoute,
    isOurs: () => false,
    replies: {
      add: (_, record, answer) => void replies.push({ token: recordToken(record), answer: Buffer.from(answer) }),
      isFull: () => way.isFull,
    },
    now: () => time.nowMs,
    onReady: () => (time.readies += 1),
    onFailure: (query) => failures.push(query),
  });
  /** Hands a query over, and gives the record that came of it. */
  const take = (token: number, query: Uint8Array): Uint8Array => {
    assert.ok(handover.pushMessage(token, TRANSPORT.TCP, Uint8Array.of(127, 0, 0, 1), 9, query, 0, query.length));
    const records: Uint8Array[] = [];
    inbox.drain(1, (_, record) => records.push(record));
    const [record] = records;
    assert.ok(record !== undefined);
    clients.take(0, record);
    return record;
  };
  return { clients, counters, asked, refreshed, replies, failures, time, way, take };
}

const LACKING = testQuery(1, ACTION.RESOLVE);
const refused = (query: Buffer, extendedError: number) => Buffer.concat([query, Buffer.of(extendedError)]);

test("what is answered at once waits for nobody; what throws is counted and gets silence", () => {
  const { clients, counters, replies, failures, take } = open();
  take(1, testQuery(7, ACTION.LONG, 0, 9));
  take(2, testQuery(8, ACTION.THROW));
  assert.deepEqual(
    replies.map(({ token, answer }) => [token, answer.length]),
    [
      [1, 9],
      [2, 0],
    ],
  );
  assert.equal(counters[COUNTER.FAILED], 1);
  assert.deepEqual(
    failures.map((query) => Buffer.from(query)),
    [testQuery(8, ACTION.THROW)],
  );
  assert.equal(clients.waiting(), 0);
});

test("a client is asked for again in each round, and told after the last", () => {
  const { clients, asked, replies, time, take } = open();
  take(1, LACKING);
  for (let round = 1; round <= CLIENT_ROUNDS_MAX; round++) {
    assert.equal(asked.length, round);
    asked[round - 1]?.({ kind: "stored" });
    assert.equal(time.readies, round);
    assert.equal(clients.serve(10), false);
  }
  assert.equal(asked.length, CLIENT_ROUNDS_MAX);
  assert.deepEqual(replies, [{ token: 1, answer: refused(LACKING, EDE.OTHER) }]);
  assert.equal(clients.waiting(), 0);
});

test("a failure is told with its extended error, and so much is served at once", () => {
  const { clients, asked, replies, take } = open();
  for (const token of [1, 2, 3]) take(token, LACKING);
  for (const done of asked) done({ kind: "failed", extendedError: EDE.NETWORK_ERROR });
  assert.equal(clients.serve(2), true);
  assert.deepEqual(
    replies.map(({ token }) => token),
    [1, 2],
  );
  assert.equal(clients.serve(2), false);
  assert.deepEqual(replies.at(-1), { token: 3, answer: refused(LACKING, EDE.NETWORK_ERROR) });
});

test("who has waited too long is told so, once", () => {
  const { clients, asked, replies, time, take } = open();
  take(1, LACKING);
  time.nowMs = 100;
  take(2, LACKING);
  time.nowMs = CLIENT_MS;
  clients.sweep();
  assert.deepEqual(replies, [{ token: 1, answer: refused(LACKING, EDE.NO_REACHABLE_AUTHORITY) }]);
  asked[0]?.({ kind: "stored" });
  clients.serve(10);
  assert.equal(replies.length, 1);
  clients.endAll();
  assert.deepEqual(replies[1], { token: 2, answer: refused(LACKING, EDE.OTHER) });
  assert.equal(clients.waiting(), 0);
});

test("a route that nobody knows fails at once", () => {
  const { asked, replies, take } = open({ knowsRoute: false });
  take(1, LACKING);
  assert.deepEqual(replies, [{ token: 1, answer: refused(LACKING, EDE.OTHER) }]);
  assert.equal(asked.length, 0);
});

test("more clients than there is room for, or with more bytes, are told so at once", () => {
  const many = open();
  for (let token = 0; token < CLIENTS_MAX; token++) many.take(token, LACKING);
  assert.deepEqual([many.clients.waiting(), many.clients.refusedFull()], [CLIENTS_MAX, 0]);
  many.take(CLIENTS_MAX, LACKING);
  assert.deepEqual(many.replies, [{ token: CLIENTS_MAX, answer: refused(LACKING, EDE.OTHER) }]);
  assert.equal(many.clients.refusedFull(), 1);
  many.asked[0]?.({ kind: "failed", extendedError: 0 });
  many.clients.serve(1);
  many.take(7, LACKING);
  assert.equal(many.clients.waiting(), CLIENTS_MAX);

  const large = open();
  const query = Buffer.concat([LACKING, Buffer.alloc(65_000)]);
  let held = 0;
  for (let token = 0; large.clients.refusedFull() === 0; token++) held += large.take(token, query).length;
  assert.ok(held <= CLIENT_BYTES_MAX + 200_000, `${held} bytes`);
  assert.equal(recordQuery(large.take(1, query)).length, query.length);
});

test("what is to be refreshed is passed on", () => {
  const { clients, refreshed, replies } = open();
  const shared = createSharedImage(1);
  createHandover(shared, 0).pushRefresh(77);
  openHandoverInbox(shared, [0]).drain(1, clients.take);
  assert.deepEqual([refreshed, replies], [[77], []]);
});

test("nobody is answered by way of a thread that has too many answers to come, until it has taken some", () => {
  const { clients, asked, replies, time, way, take } = open();
  const tokens = () => replies.map(({ token }) => token);
  take(1, LACKING);
  way.isFull = true;
  take(2, testQuery(7, ACTION.LONG, 0, 9));
  asked[0]?.({ kind: "failed", extendedError: EDE.OTHER });
  assert.equal(clients.serve(10), false, "there is nothing to be done");
  assert.deepEqual([tokens(), clients.waiting()], [[], 2]);
  way.isFull = false;
  time.readies = 0;
  clients.relieve();
  assert.equal(time.readies, 1);
  assert.equal(clients.serve(10), false);
  assert.deepEqual(new Set(tokens()), new Set([1, 2]));
  assert.equal(clients.waiting(), 0);
});

test("who waits too long for such a thread hears nothing", () => {
  const { clients, replies, time, way, take } = open();
  way.isFull = true;
  take(1, testQuery(7, ACTION.LONG, 0, 9));
  time.nowMs = CLIENT_MS;
  clients.sweep();
  assert.deepEqual(
    replies.map(({ token, answer }) => [token, answer.length]),
    [[1, 0]],
  );
  way.isFull = false;
  clients.relieve();
  clients.serve(10);
  assert.deepEqual([replies.length, clients.waiting()], [1, 0]);
});

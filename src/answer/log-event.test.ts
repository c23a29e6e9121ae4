import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeQuery } from "../../tests/support/dns-message.ts";
import { COUNTER, TRANSPORT, threadCounters } from "../image/counters.ts";
import { EVENT, eventRing, SOURCE, TRAIT, takeEvents, WANTED } from "../image/events.ts";
import { CONTROL, createSharedImage, EVENT_DATA_BYTES } from "../image/shared.ts";
import { createAnswerer } from "./answerer.ts";

const CLIENT = Uint8Array.of(0, 0, 0x14, 0xe9, 192, 0, 2, 7);
const THREAD = 3;

function lab(logs?: "socket-names" | "addresses") {
  const shared = createSharedImage(1);
  const control = new Int32Array(shared.control);
  const options = { thread: THREAD, nodeId: undefined, maxUdpSize: 1232, tcpIdleSeconds: 10 };
  const answerer = createAnswerer(shared, logs === undefined ? options : { ...options, logs });
  const ring = eventRing(shared, THREAD);
  const bytes = new Uint8Array(4096);
  const ask = (query = encodeQuery({ name: "Www.example.", type: 28, edns: { udpSize: 1400 } })): number => {
    bytes.set(query);
    answerer.enter();
    const length = answerer.answer(bytes, 0, query.length, 4096, CLIENT, 4, 4, TRANSPORT.UDP);
    answerer.leave();
    return length;
  };
  const take = (): DataView[] => {
    const events: DataView[] = [];
    takeEvents(ring, 100_000, (at) => {
      const length = ring.data.getUint32(at + EVENT.LENGTH, true);
      events.push(new DataView(ring.bytes.slice(at, at + length).buffer));
    });
    return events;
  };
  return { control, answerer, ask, take, bytes, counters: threadCounters(shared, THREAD) };
}

test("nothing is told while nobody wants it, and never by an answerer that is for no client", () => {
  const { ask, take } = lab("socket-names");
  ask();
  assert.equal(take().length, 0);
  const other = lab();
  other.control[CONTROL.LOG_EVERY] = 1;
  other.control[CONTROL.CAPTURE] = 1;
  other.ask();
  assert.equal(other.take().length, 0);
});

test("one in so many queries of the thread is sampled, and capture has all of them", () => {
  const { control, ask, take } = lab("socket-names");
  control[CONTROL.LOG_EVERY] = 10;
  for (let count = 0; count < 1_000; count++) ask();
  assert.equal(take().length, 100);
  control[CONTROL.CAPTURE] = 1;
  for (let count = 0; count < 50; count++) ask();
  const wanted = take().map((event) => event.getUint8(EVENT.WANTED));
  assert.equal(wanted.length, 50);
  assert.equal(wanted.filter((each) => each === (WANTED.CAPTURED | WANTED.SAMPLED)).length, 5);
  assert.equal(wanted.filter((each) => each === WANTED.CAPTURED).length, 45);
});

test("an event has the client, what was asked and what came of it", () => {
  const { control, ask, take, answerer, bytes } = lab("socket-names");
  control[CONTROL.LOG_EVERY] = 1;
  const length = ask();
  const [event] = take();
  assert.ok(event);
  const u16 = (at: number): number => event.getUint16(at, true);
  assert.deepEqual(
    [
      u16(EVENT.PORT),
      u16(EVENT.TYPE),
      u16(EVENT.CLASS),
      u16(EVENT.RCODE),
      u16(EVENT.EDNS_BYTES),
      u16(EVENT.ANSWER_BYTES),
    ],
    [0x14e9, 28, 1, 5, 1400, length],
  );
  assert.equal(event.getUint8(EVENT.TRAITS), TRAIT.QUESTION | TRAIT.EDNS);
  assert.equal(event.getUint8(EVENT.SOURCES), SOURCE.REFUSED);
  assert.deepEqual(new Uint8Array(event.buffer, EVENT.ADDRESS, 4), CLIENT.slice(4));
  // Header and question of the answer, in the case of the client.
  const questionEnd = 12 + 13 + 4;
  assert.equal(u16(EVENT.MESSAGE_BYTES), questionEnd);
  assert.deepEqual(new Uint8Array(event.buffer, EVENT.MESSAGE, questionEnd), bytes.slice(0, questionEnd));
  assert.ok(Math.abs(event.getFloat64(EVENT.TIME, true) - Date.now()) < 60_000);
  control[CONTROL.LOG_MESSAGES] = 1;
  ask();
  assert.equal(take()[0]?.getUint16(EVENT.MESSAGE_BYTES, true), length);
  assert.equal(answerer.client.port, 0);
});

test("what is no question is the server's own; what is no query at all is not told", () => {
  const { control, ask, take } = lab("addresses");
  control[CONTROL.CAPTURE] = 1;
  const query = encodeQuery({ name: "a.", type: 1 });
  const other = Uint8Array.from(query);
  other[2] = 0x10;
  const malformed = query.subarray(0, query.length - 2);
  const response = Uint8Array.from(query);
  response[2] = 0x80;
  for (const message of [other, malformed, response, query.subarray(0, 5), encodeQuery({ name: "a.", type: 251 })]) {
    ask(Buffer.from(message));
  }
  assert.deepEqual(
    take().map((event) => event.getUint8(EVENT.SOURCES)),
    [SOURCE.SERVER, SOURCE.SERVER, SOURCE.SERVER],
  );
});

test("where the ring is full answers go on, and what was not told is counted", () => {
  const { control, ask, take, counters } = lab("socket-names");
  control[CONTROL.CAPTURE] = 1;
  const total = Math.ceil(EVENT_DATA_BYTES / 80);
  for (let count = 0; count < total; count++) assert.ok(ask() > 0);
  const told = take().length;
  assert.ok(told > 1_000 && told < total);
  assert.equal(told + counters[COUNTER.EVENTS_DROPPED]!, total);
  ask();
  assert.equal(take().length, 1);
});

test("what is answered for updaters and secondaries is told of as all else is", () => {
  const { control, answerer, take, bytes } = lab("socket-names");
  control[CONTROL.LOG_EVERY] = 1;
  const told = (type: number, opcode: number, rcode: number) => {
    const query = encodeQuery({ name: "corp.test.", type, flags: opcode << 11 });
    bytes.set(query);
    answerer.enter();
    const length = answerer.answerWith(bytes, 0, query.length, CLIENT, 4, 4, TRANSPORT.TCP, rcode);
    const answer = bytes.slice(0, length);
    bytes.set(query);
    answerer.note(bytes, 0, query.length, answer, CLIENT, 4, 4, TRANSPORT.TCP);
    answerer.leave();
    const events = take();
    assert.equal(events.length, 2);
    return events.map((event) => [
      event.getUint16(EVENT.TYPE, true),
      event.getUint16(EVENT.RCODE, true),
      event.getUint8(EVENT.SOURCES),
    ]);
  };
  const twice = (row: readonly number[]) => [row, row];
  const [update, notify, soa, axfr] = [5, 4, 6, 252];
  assert.deepEqual(told(soa, update, 0), twice([soa, 0, SOURCE.SERVER]));
  assert.deepEqual(told(soa, notify, 5), twice([soa, 5, SOURCE.SERVER]));
  assert.deepEqual(told(soa, 0, 9), twice([soa, 9, SOURCE.SERVER]));
  assert.deepEqual(told(axfr, 0, 0), twice([axfr, 0, SOURCE.ZONE]));
  assert.deepEqual(told(axfr, 0, 5), twice([axfr, 5, SOURCE.REFUSED]));
});

/** Both UDP listeners, each in a thread of its own, held to the same behaviour. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { ACTION, longQuery, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER, threadCounters } from "../image/counters.ts";
import { HANDOVER_KIND } from "../image/handover.ts";
import { CONTROL, createSharedImage } from "../image/shared.ts";
import { type Address, hostText } from "./address.ts";
import { createAnswerFrames } from "./answer-frames.ts";
import { openHandoverInbox } from "./handover.ts";
import {
  recordAddress,
  recordControl,
  recordKind,
  recordName,
  recordPort,
  recordQuery,
  recordToken,
} from "./handover-record.ts";
import { UDP_SLOT_BYTES } from "./limits.ts";
import { openLibc } from "./linux/libc.ts";
import { createReplySender } from "./linux/reply.ts";
import { closeListeners, type Listener, openListeners } from "./sockets.ts";
import { probeListeners } from "./sockets-portable.ts";
import type { ListenerThreadMessage, LoopThreadData } from "./threads.ts";

const ADDRESSES: readonly Address[] = [
  { bytes: Uint8Array.of(127, 0, 0, 1), port: 0 },
  { bytes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), port: 0 },
];
const WILDCARDS: readonly Address[] = [
  { bytes: new Uint8Array(4), port: 0 },
  { bytes: new Uint8Array(16), port: 0 },
];
/** Ids 10 to 209 that leave 2 when divided by 3. */
const THROWN_OF_200 = 67;
const FIRST = ADDRESSES.slice(0, 1);

const found = openLibc();
assert.ok(found, "these tests need Linux and koffi");
const libc = found;

for (const [kind, addresses] of [
  ["batch", FIRST],
  ["batch", ADDRESSES],
  ["batch", WILDCARDS],
  ["dgram", ADDRESSES],
  ["dgram without descriptors", ADDRESSES],
] as const) {
  describe(`${kind} on ${addresses.map(hostText).join(" and ")}`, () => {
    const shared = createSharedImage(1);
    const counters = threadCounters(shared, 0);
    const failures: ListenerThreadMessage[] = [];
    const clients: Client[] = [];
    let listeners: readonly Listener[] = [];
    const { port1: resolvePort, port2: resolver } = new MessageChannel();
    const inbox = openHandoverInbox(shared, [0]);
    let worker: Worker;

    before(async () => {
      const isBoundByThread = kind === "dgram without descriptors";
      listeners = isBoundByThread ? await probeListeners(addresses) : openListeners(libc, addresses, 1, []);
      const workerData: LoopThreadData & { readonly kind: string } = {
        kind,
        shared,
        thread: 0,
        sockets: listeners.map(({ address, udp }) => ({ address, descriptor: udp[0] })),
        options: { nodeId: undefined, maxUdpSize: 1232, tcpIdleSeconds: 10 },
        start: 0,
        resolvePort,
      };
      worker = new Worker(new URL("../../tests/support/listen/fake-udp-entry.ts", import.meta.url), {
        workerData,
        transferList: [resolvePort],
      });
      worker.on("message", (message: ListenerThreadMessage) => {
        if (message.kind === "failure") failures.push(message);
      });
      await once(worker, "message");
      for (const { address } of listeners) clients.push(await openClient(address));
    });
    after(async () => {
      for (const { socket } of clients) socket.close();
      const exited = once(worker, "exit");
      Atomics.store(new Int32Array(shared.control), CONTROL.STOP, 1);
      worker.postMessage({ kind: "stop" });
      assert.deepEqual(await exited, [0]);
      resolver.close();
      closeListeners(libc, listeners);
    });

    test("answers with the client's address at hand", async () => {
      for (const client of clients) {
        const answer = await client.ask(testQuery(1, ACTION.ECHO));
        assert.deepEqual(answer, Buffer.concat([testQuery(1, ACTION.ECHO), client.loopback]));
      }
    });

    test("silences and throws between queries leave each answer with its own query", async () => {
      for (const client of clients) {
        const ids = Array.from({ length: 200 }, (_, index) => index + 10);
        const answered = ids.filter((id) => id % 3 === 0);
        const answers = answered.map((id) => client.answerTo(id));
        for (const id of ids) {
          const thrown = id % 2 === 0 ? ACTION.THROW : ACTION.THROW_EARLY;
          const other = testQuery(id, id % 3 === 1 ? ACTION.SILENCE : thrown);
          client.socket.send(id % 3 === 0 ? longQuery(id, 20 + id) : other);
        }
        for (const [index, answer] of (await Promise.all(answers)).entries()) {
          const id = answered[index]!;
          assert.deepEqual(answer, Buffer.concat([longQuery(id, 20 + id), Buffer.alloc(15 + id, id & 255)]));
        }
      }
      const thrown = clients.length * THROWN_OF_200;
      await waitFor("failures are counted", 5_000, () => counters[COUNTER.FAILED] === thrown);
      await waitFor("failures are reported", 5_000, () => failures.length > 0);
      assert.ok(failures.every((message) => message.kind === "failure" && message.detail === "asked to throw"));
    });

    test("what has to be resolved is handed over as it came, and a full way is told at once", async () => {
      const records: Uint8Array[] = [];
      /** The first record of a kind, of a given id where it is a query. */
      const find = (wanted: number, id?: number) =>
        waitFor("a record", 5_000, () => {
          inbox.drain(1_000, (_, record) => records.push(record));
          const isWanted = (record: Uint8Array) =>
            recordKind(record) === wanted &&
            (id === undefined || Buffer.from(recordQuery(record)).readUInt16BE(0) === id);
          return records.splice(0).find(isWanted);
        });
      const handedOver = kind === "batch" ? HANDOVER_KIND.DATAGRAM : HANDOVER_KIND.MESSAGE;
      for (const [socket, client] of clients.entries()) {
        const query = testQuery(1_000, ACTION.RESOLVE, 1, 2, 3);
        assert.deepEqual(await client.ask(testQuery(1_001, ACTION.REFRESH)), testQuery(1_001, ACTION.REFRESH));
        assert.equal(recordToken(await find(HANDOVER_KIND.REFRESH)), 77);
        const answer = client.answerTo(1_000);
        client.socket.send(query);
        const record = await find(handedOver, 1_000);
        assert.deepEqual(Buffer.from(recordQuery(record)), query);
        assert.deepEqual([...recordAddress(record)], [...client.loopback]);
        assert.equal(recordPort(record), client.socket.address().port);
        if (kind === "batch") {
          assert.equal(recordToken(record), socket);
          const sender = createReplySender(libc);
          const descriptor = listeners[socket]?.udp[0];
          assert.ok(descriptor !== undefined);
          assert.equal(sender.add(descriptor, recordName(record), recordControl(record), recordQuery(record)), 0);
          assert.equal(sender.send(), 0);
        } else {
          const frames = createAnswerFrames();
          frames.add(recordToken(record), recordQuery(record));
          resolver.postMessage(frames.take());
        }
        assert.deepEqual(await answer, query);
        const full = counters[COUNTER.HANDOVER_FULL]!;
        const large = Buffer.concat([testQuery(1_002, ACTION.RESOLVE), Buffer.alloc(4_000)]);
        const told = client.answerTo(1_002);
        await waitFor("a full way", 10_000, () => {
          for (let index = 0; index < 20; index++) client.socket.send(large);
          return counters[COUNTER.HANDOVER_FULL]! > full;
        });
        assert.deepEqual(await told, Buffer.concat([large, Buffer.alloc(1)]));
        inbox.drain(1_000_000, () => {});
      }
    });

    test("takes and gives the longest datagrams of a slot, and empty ones", async () => {
      for (const client of clients) {
        client.socket.send(Buffer.alloc(0));
        const answer = await client.ask(longQuery(300, UDP_SLOT_BYTES));
        assert.equal(answer.length, UDP_SLOT_BYTES);
        const query = Buffer.concat([testQuery(301, ACTION.ECHO), Buffer.alloc(3_000, 7)]);
        assert.deepEqual(await client.ask(query), Buffer.concat([query, client.loopback]));
      }
    });
  });
}

type Client = {
  readonly socket: Socket;
  /** The loopback address of the socket's family. */
  readonly loopback: Uint8Array;
  readonly answerTo: (id: number) => Promise<Buffer>;
  readonly ask: (query: Buffer) => Promise<Buffer>;
};

async function openClient(server: Address): Promise<Client> {
  const isV4 = server.bytes.length === 4;
  const socket = createSocket(isV4 ? "udp4" : "udp6");
  socket.connect(server.port, isV4 ? "127.0.0.1" : "::1");
  await once(socket, "connect");
  const answerTo = (id: number) =>
    new Promise<Buffer>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${id}`)), 5_000);
      const take = (answer: Buffer) => {
        if (answer.readUInt16BE(0) !== id) return;
        clearTimeout(timer);
        socket.off("message", take);
        resolve(answer);
      };
      socket.setMaxListeners(0);
      socket.on("message", take);
    });
  const ask = (query: Buffer) => {
    const answer = answerTo(query.readUInt16BE(0));
    socket.send(query);
    return answer;
  };
  return { socket, loopback: ADDRESSES[isV4 ? 0 : 1]!.bytes, answerTo, ask };
}

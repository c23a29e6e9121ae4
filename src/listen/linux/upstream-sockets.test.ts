import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { waitFor } from "../../../tests/support/wait.ts";
import { openLibc } from "./libc.ts";
import { openLinuxUdpSockets } from "./upstream-sockets.ts";

const LOOPBACK = Uint8Array.of(127, 0, 0, 1);

async function openEcho() {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  socket.on("message", (bytes, source) => socket.send(bytes, source.port, source.address));
  return { port: socket.address().port, [Symbol.dispose]: () => void socket.close() };
}

test("a port that is taken is drawn again, and no socket is had where all are", async () => {
  const libc = openLibc();
  if (libc === undefined) return;
  using echo = await openEcho();
  const taken = createSocket("udp4").bind(0);
  await once(taken, "listening");
  const draws = [taken.address().port, taken.address().port];
  let drawn = 0;
  const heard: string[] = [];
  const sockets = openLinuxUdpSockets(libc, {
    capacity: 2,
    randomPort: () => draws[drawn++] ?? 40_000 + drawn,
    events: { onDatagram: (_, bytes) => heard.push(Buffer.from(bytes).toString()), onError: () => heard.push("error") },
  });
  const socket = sockets.open(LOOPBACK, echo.port, Buffer.from("hello"));
  assert.ok(socket >= 0 && drawn >= 3);
  await waitFor("the echo", 5_000, () => heard.length > 0);
  assert.deepEqual(heard, ["hello"]);
  assert.equal(sockets.socketAt(40_000 + drawn, 4), socket);
  assert.equal(sockets.socketAt(40_000 + drawn, 16), -1);
  draws.length = 0;
  draws.push(...new Array(1_000).fill(taken.address().port));
  drawn = 0;
  assert.equal(sockets.open(LOOPBACK, echo.port, Buffer.from("hello")), -1);
  sockets.end();
  taken.close();
});

const THREAD = `
  const { parentPort, workerData } = require("node:worker_threads");
  (async () => {
    const { openLibc } = await import(workerData.base + "libc.ts");
    const { openLinuxUdpSockets } = await import(workerData.base + "upstream-sockets.ts");
    let heard = 0;
    const ask = () => sockets.open(Uint8Array.of(127, 0, 0, 1), workerData.port, new Uint8Array(40));
    const sockets = openLinuxUdpSockets(openLibc(), {
      capacity: 64,
      randomPort: () => 1024 + Math.floor(Math.random() * 64000),
      descriptors: new Int32Array(workerData.descriptors),
      events: {
        onDatagram: (socket) => {
          sockets.close(socket);
          ask();
          if (++heard === 50) parentPort.postMessage("busy");
        },
        onError: () => {},
      },
    });
    for (let each = 0; each < 16; each++) ask();
    setInterval(() => {}, 1000);
  })();
`;

test("a thread may be ended while answers come, and what it left open is closed by the next", async () => {
  const libc = openLibc();
  if (libc === undefined) return;
  using echo = await openEcho();
  const descriptors = new SharedArrayBuffer(65 * 4);
  const workerData = { base: new URL("./", import.meta.url).href, port: echo.port, descriptors };
  const before = readdirSync("/proc/self/fd").length;
  for (let each = 0; each < 12; each++) {
    const thread = new Worker(THREAD, { eval: true, workerData });
    await once(thread, "message");
    await thread.terminate();
  }
  const left = new Int32Array(descriptors).filter((descriptor) => descriptor > 0).length;
  assert.ok(left > 1, "it was ended with sockets open");
  // Of each thread a socket may be lost that was being opened.
  assert.ok(readdirSync("/proc/self/fd").length <= before + left + 12);
  const options = { capacity: 64, randomPort: () => 0, events: { onDatagram: () => {}, onError: () => {} } };
  openLinuxUdpSockets(libc, { ...options, descriptors: new Int32Array(descriptors) }).end();
  await waitFor("all are closed", 5_000, () => readdirSync("/proc/self/fd").length <= before + 12);
});

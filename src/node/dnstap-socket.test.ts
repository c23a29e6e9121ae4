import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import { CONTROL_FRAME, controlFrame, DNSTAP_CONTENT_TYPE, readControlFrame } from "./dnstap-message.ts";
import { openDnstapSocket } from "./dnstap-socket.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-dnstap-"));
after(() => rm(parent, { recursive: true, force: true }));

async function lab(name: string, serve: (socket: Socket) => void) {
  const path = join(parent, name);
  const connections: Socket[] = [];
  const server = createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => {});
    serve(socket);
  });
  server.listen(path);
  await once(server, "listening");
  const figures = { written: 0, lost: 0, messages: [] as string[] };
  const tap = openDnstapSocket({
    path,
    onWritten: () => {
      figures.written++;
    },
    onLost: () => {
      figures.lost++;
    },
    log: (_, message) => figures.messages.push(message),
  });
  return {
    tap,
    figures,
    connections,
    [Symbol.asyncDispose]: async () => {
      await tap.close();
      for (const socket of connections) socket.destroy();
      server.close();
    },
  };
}

const ACCEPT = controlFrame(CONTROL_FRAME.ACCEPT, DNSTAP_CONTENT_TYPE);

test("the handshake is READY, ACCEPT in whatever pieces, START; at the end comes STOP", async () => {
  let received = Buffer.alloc(0);
  await using world = await lab("good", (socket) => {
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
    });
    for (const byte of ACCEPT) socket.write(Uint8Array.of(byte));
  });
  await waitFor("readiness", 20_000, world.tap.isReady);
  world.tap.offer(Buffer.from("message"));
  await world.tap.close();
  const types: number[] = [];
  const take = (): void => {
    const frame = readControlFrame(received);
    assert.ok(frame !== undefined && frame !== "malformed");
    types.push(frame.type);
    received = received.subarray(frame.bytes);
  };
  take();
  take();
  assert.deepEqual(received.subarray(0, 11), Buffer.from("\0\0\0\x07message"));
  received = received.subarray(11);
  take();
  assert.deepEqual(types, [CONTROL_FRAME.READY, CONTROL_FRAME.START, CONTROL_FRAME.STOP]);
  assert.deepEqual([world.figures.written, world.figures.lost], [1, 0]);
});

test("one that says anything else is left, and tried again", async () => {
  const replies = [
    Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
    controlFrame(CONTROL_FRAME.FINISH),
    controlFrame(CONTROL_FRAME.ACCEPT, "protobuf:other"),
    ACCEPT,
  ];
  await using world = await lab("bad", (socket) => socket.write(replies[world.connections.length - 1] ?? ACCEPT));
  world.tap.offer(Buffer.from("lost"));
  await waitFor("readiness", 20_000, world.tap.isReady);
  assert.equal(world.connections.length, 4);
  assert.deepEqual([world.figures.written, world.figures.lost], [0, 1]);
  assert.equal(world.figures.messages.length, 2, "one warning, and one line when it is over");
});

test("one that does not read costs a bounded amount of memory, and the rest is lost", async () => {
  await using world = await lab("deaf", (socket) => {
    socket.pause();
    socket.write(ACCEPT);
  });
  await waitFor("readiness", 20_000, world.tap.isReady);
  const message = Buffer.alloc(60_000);
  for (let count = 0; count < 1_000; count++) world.tap.offer(message);
  const { written, lost } = world.figures;
  assert.equal(written + lost, 1_000);
  assert.ok(written > 50 && written < 200, `${written} written`);
});

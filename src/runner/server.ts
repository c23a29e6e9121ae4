/** The runner's socket: requests in, outcomes out. */
import { createServer, type Server, type Socket } from "node:net";
import type { Log } from "../base/log.ts";
import {
  createLineCutter,
  lineOf,
  REQUEST_BYTES_MAX,
  requestFromLine,
  SCRIPT_PROTOCOL_VERSION,
} from "../base/script-protocol.ts";
import { CONNECTIONS_MAX, UNTAKEN_BYTES_MAX } from "./limits.ts";
import type { ScriptQueue } from "./queue.ts";

/** A server that does not listen yet. What a connection asked for ends with it, and all with `callOff`. */
export function createScriptServer(queue: ScriptQueue, callOff: () => AbortSignal, log: Log): Server {
  const server = createServer((socket) => serve(socket, queue, callOff, log));
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

function serve(socket: Socket, queue: ScriptQueue, callOff: () => AbortSignal, log: Log): void {
  const gone = new AbortController();
  // A peer that goes away is an everyday matter: "close" follows.
  socket.on("error", () => {});
  socket.once("close", () => gone.abort());
  const give = (line: string) => {
    if (socket.writable) socket.write(line);
    if (socket.writableLength > UNTAKEN_BYTES_MAX) socket.destroy();
  };
  const refuse = (why: string) => {
    log("warn", `a connection to the runner of scripts ends: ${why}`);
    socket.destroy();
  };
  const take = createLineCutter(REQUEST_BYTES_MAX, (line) => {
    if (socket.destroyed) return;
    const request = requestFromLine(line);
    if (request === undefined) return refuse("it sent what is no request");
    const { id, command, args, timeoutMs } = request;
    const signal = AbortSignal.any([gone.signal, callOff()]);
    const done = queue.submit({ command, args, timeoutMs, callOff: signal });
    void done.then((outcome) => give(lineOf({ kind: "done", id, outcome })));
  });
  socket.on("data", (chunk: Buffer) => {
    if (!take(chunk)) refuse("it sent too long a line");
  });
  give(lineOf({ kind: "hello", version: SCRIPT_PROTOCOL_VERSION }));
}

/**
 * A name server of tests, over real sockets: UDP and TCP on one port of several loopback addresses, TLS on a second port.
 * A handler decides for each query what happens: see `Reply`. All that arrives is kept.
 */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { decodeMessage } from "../../src/dns/message.ts";
import { nameToText } from "../../src/dns/name.ts";
import { typeToText } from "../../src/dns/type-names.ts";
import { freePort } from "./ports.ts";
import { cookieOf, type Handler, type ReceivedQuery, type Reply, replyBytes } from "./scripted-replies.ts";
import { waitFor } from "./wait.ts";

export type ScriptedUpstream = AsyncDisposable & {
  /** UDP and TCP, the same at each address. */
  readonly port: number;
  /** 0 without a certificate. */
  readonly tlsPort: number;
  readonly addresses: readonly string[];
  /** All that came, oldest first; the test may empty it. */
  readonly queries: ReceivedQuery[];
  /** What came and was no query that can be read. */
  readonly unreadable: Buffer[];
  /** Connections accepted so far, and those that are open. */
  readonly connections: () => { readonly accepted: number; readonly open: number };
  readonly setHandler: (handler: Handler) => void;
  /** Waits until so many queries have come. */
  readonly received: (count: number) => Promise<readonly ReceivedQuery[]>;
  /** Sends bytes over UDP from a socket of its own (an address; port 0: any) to where a query came from. */
  readonly spoof: (query: ReceivedQuery, bytes: Uint8Array, fromAddress: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type UpstreamOptions = {
  readonly handler: Handler;
  /** Default: 127.0.0.1. */
  readonly addresses?: readonly string[];
  /** Default: one that is free. */
  readonly port?: number;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** "udp": TCP is refused. "tcp": UDP is. */
  readonly only?: "udp" | "tcp";
  /** False: queries are answered and not kept, for loads. */
  readonly keeps?: boolean;
};

type Endpoint = Pick<ReceivedQuery, "transport" | "server" | "source" | "connection" | "ordinal">;

type Script = {
  handler: Handler;
  readonly queries: ReceivedQuery[];
  readonly unreadable: Buffer[];
  readonly keeps: boolean;
  readonly timers: Set<NodeJS.Timeout>;
  readonly strangers: Set<UdpSocket>;
  readonly streams: Set<Socket>;
  accepted: number;
};

const BIND_ATTEMPTS = 20;

export async function startScriptedUpstream(options: UpstreamOptions): Promise<ScriptedUpstream> {
  const { handler, addresses = ["127.0.0.1"], keeps = true } = options;
  const script: Script = {
    handler,
    queries: [],
    unreadable: [],
    keeps,
    timers: new Set(),
    strangers: new Set(),
    streams: new Set(),
    accepted: 0,
  };
  const opened = await openAll(script, options, addresses);
  const { port, tlsPort, sockets, servers } = opened;
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    for (const timer of script.timers) clearTimeout(timer);
    for (const stream of script.streams) stream.destroy();
    for (const socket of [...sockets, ...script.strangers]) socket.close();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  return {
    port,
    tlsPort,
    addresses,
    queries: script.queries,
    unreadable: script.unreadable,
    connections: () => ({ accepted: script.accepted, open: script.streams.size }),
    setHandler: (next) => {
      script.handler = next;
    },
    received: (count) =>
      waitFor(`${count} queries`, 10_000, () => (script.queries.length >= count ? script.queries : undefined), 2),
    spoof: (query, bytes, fromAddress) => sendFromStranger(script, query, bytes, fromAddress),
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Opened = {
  readonly port: number;
  readonly tlsPort: number;
  readonly sockets: readonly UdpSocket[];
  readonly servers: readonly NetServer[];
};

async function openAll(script: Script, options: UpstreamOptions, addresses: readonly string[]): Promise<Opened> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort(addresses[0]));
    const sockets: UdpSocket[] = [];
    const servers: NetServer[] = [];
    let tlsPort = 0;
    try {
      for (const address of addresses) {
        if (options.only !== "tcp") sockets.push(await openUdp(script, address, port));
        if (options.only !== "udp") servers.push(await openTcp(script, address, port));
        if (options.tls === undefined) continue;
        const server = await openTls(script, address, tlsPort, options.tls);
        servers.push(server);
        const bound = server.address();
        tlsPort = bound !== null && typeof bound === "object" ? bound.port : 0;
      }
      return { port, tlsPort, sockets, servers };
    } catch (error) {
      for (const socket of sockets) socket.close();
      for (const server of servers) server.close();
      if (attempt === BIND_ATTEMPTS || options.port !== undefined) throw error;
    }
  }
}

async function openUdp(script: Script, address: string, port: number): Promise<UdpSocket> {
  const socket = createSocket({
    type: address.includes(":") ? "udp6" : "udp4",
    recvBufferSize: 4 << 20,
    sendBufferSize: 4 << 20,
  });
  socket.bind({ port, address, exclusive: true });
  await once(socket, "listening");
  // A client that has gone already answers by ICMP.
  socket.on("error", () => {});
  socket.on("message", (bytes: Buffer, source: RemoteInfo) => {
    const endpoint: Endpoint = {
      transport: "udp",
      server: address,
      source: { address: source.address, port: source.port },
      connection: -1,
      ordinal: 0,
    };
    take(script, endpoint, bytes, (query, reply) => sendUdp(script, socket, query, reply));
  });
  return socket;
}

async function openTcp(script: Script, address: string, port: number): Promise<NetServer> {
  const server = createServer({ noDelay: true });
  server.on("connection", (socket) => serveStream(script, socket, "tcp", address));
  server.listen({ port, host: address, exclusive: true });
  await once(server, "listening");
  return server;
}

async function openTls(
  script: Script,
  address: string,
  port: number,
  tls: { readonly cert: string; readonly key: string },
): Promise<NetServer> {
  const server = createTlsServer({ cert: tls.cert, key: tls.key });
  server.on("secureConnection", (socket) => serveStream(script, socket, "tls", address));
  server.on("tlsClientError", () => {});
  server.listen({ port, host: address, exclusive: true });
  await once(server, "listening");
  return server;
}

function serveStream(script: Script, socket: Socket, transport: "tcp" | "tls", server: string): void {
  const connection = script.accepted;
  script.accepted++;
  script.streams.add(socket);
  socket.on("error", () => {});
  socket.on("close", () => script.streams.delete(socket));
  const source = { address: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 };
  let buffered: Buffer = Buffer.alloc(0);
  let ordinal = 0;
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const end = 2 + buffered.readUInt16BE(0);
      const endpoint: Endpoint = { transport, server, source, connection, ordinal };
      ordinal++;
      take(script, endpoint, buffered.subarray(2, end), (query, reply) => sendStream(script, socket, query, reply));
      buffered = buffered.subarray(end);
    }
  });
}

function take(
  script: Script,
  endpoint: Endpoint,
  bytes: Buffer,
  send: (query: ReceivedQuery, reply: Reply) => void,
): void {
  const decoded = decodeMessage(bytes);
  const question = decoded.kind === "message" ? decoded.message.questions[0] : undefined;
  if (decoded.kind === "error" || question === undefined) {
    script.unreadable.push(bytes);
    return;
  }
  const query: ReceivedQuery = {
    ...endpoint,
    atMs: performance.now(),
    bytes,
    message: decoded.message,
    name: nameToText(question.name),
    type: typeToText(question.type),
    cookie: cookieOf(decoded.message),
  };
  if (script.keeps) script.queries.push(query);
  const said = script.handler(query);
  for (const reply of "kind" in said ? [said] : said) {
    if (reply.delayMs === undefined) send(query, reply);
    else later(script, reply.delayMs, () => send(query, reply));
  }
}

function later(script: Script, delayMs: number, action: () => void): void {
  const timer = setTimeout(() => {
    script.timers.delete(timer);
    action();
  }, delayMs);
  script.timers.add(timer);
}

function bytesOf(query: ReceivedQuery, reply: Reply): Uint8Array | undefined {
  if (reply.kind === "answer") return replyBytes(query, reply);
  return reply.kind === "bytes" || reply.kind === "stream-bytes" ? reply.bytes : undefined;
}

function sendUdp(script: Script, socket: UdpSocket, query: ReceivedQuery, reply: Reply): void {
  const bytes = bytesOf(query, reply);
  if (bytes === undefined) return;
  const target = { ...query, source: { ...query.source, port: reply.toPort ?? query.source.port } };
  if (reply.from === undefined) socket.send(bytes, target.source.port, target.source.address, () => {});
  else void sendFromStranger(script, target, bytes, reply.from === "server" ? query.server : reply.from);
}

async function sendFromStranger(script: Script, query: ReceivedQuery, bytes: Uint8Array, from: string): Promise<void> {
  const socket = createSocket(from.includes(":") ? "udp6" : "udp4");
  script.strangers.add(socket);
  socket.bind({ address: from });
  await once(socket, "listening");
  await new Promise<void>((resolve) => {
    socket.send(bytes, query.source.port, query.source.address, () => resolve());
  });
  if (script.strangers.delete(socket)) socket.close();
}

function sendStream(script: Script, socket: Socket, query: ReceivedQuery, reply: Reply): void {
  if (socket.destroyed) return;
  if (reply.kind === "reset") {
    socket.resetAndDestroy();
    return;
  }
  if (reply.kind === "close") {
    socket.end();
    return;
  }
  const bytes = bytesOf(query, reply);
  if (bytes === undefined) return;
  const prefix = Uint8Array.of(bytes.length >> 8, bytes.length & 0xff);
  const all = reply.kind === "stream-bytes" ? Buffer.from(bytes) : Buffer.concat([prefix, bytes]);
  if (reply.trickle === undefined) socket.write(all);
  else trickle(script, socket, all, reply.trickle);
}

function trickle(script: Script, socket: Socket, bytes: Buffer, pace: { bytes: number; everyMs: number }): void {
  if (socket.destroyed || bytes.length === 0) return;
  socket.write(bytes.subarray(0, pace.bytes));
  later(script, pace.everyMs, () => trickle(script, socket, bytes.subarray(pace.bytes), pace));
}

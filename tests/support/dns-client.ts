import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";

export type Endpoint = { readonly port: number; readonly address?: string };

/**
 * Sends queries to one server and matches responses by id. `ask` sets the id in a copy of the message and resolves to
 * the response, or to undefined when none has come within `timeoutMs` (default: DEFAULT_TIMEOUT_MS) or the connection has ended.
 */
export type DnsClient = {
  readonly ask: (message: Uint8Array, timeoutMs?: number) => Promise<Buffer | undefined>;
  readonly close: () => void;
};

/** For answers that must come, on a machine that does other things too; who expects silence says how long. */
const DEFAULT_TIMEOUT_MS = 20_000;

type Waiting = {
  readonly ask: (message: Uint8Array, timeoutMs: number, send: (copy: Buffer) => void) => Promise<Buffer | undefined>;
  readonly settle: (response: Buffer) => void;
  readonly giveUp: () => void;
};

function waitingQueries(): Waiting {
  const waiting = new Map<number, (response: Buffer | undefined) => void>();
  let nextId = 1;
  return {
    ask: (message, timeoutMs, send) =>
      new Promise((resolve) => {
        while (waiting.has(nextId)) nextId = (nextId + 1) & 0xffff;
        const id = nextId;
        nextId = (nextId + 1) & 0xffff;
        const copy = Buffer.from(message);
        copy.writeUInt16BE(id, 0);
        const finish = (response: Buffer | undefined) => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(response);
        };
        const timer = setTimeout(() => finish(undefined), timeoutMs);
        waiting.set(id, finish);
        send(copy);
      }),
    settle: (response) => {
      if (response.length >= 2) waiting.get(response.readUInt16BE(0))?.(response);
    },
    giveUp: () => {
      for (const finish of [...waiting.values()]) finish(undefined);
    },
  };
}

/** A UDP client with a connected socket of its own, on a local address where that matters. An ICMP error ends what waits at once. */
export async function openUdpClient({ port, address = "127.0.0.1" }: Endpoint, from?: string): Promise<DnsClient> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  if (from !== undefined) {
    socket.bind({ address: from });
    await once(socket, "listening");
  }
  const waiting = waitingQueries();
  socket.on("message", (response) => waiting.settle(response));
  // A port that nobody listens on answers by ICMP: what waits need not wait longer.
  socket.on("error", () => waiting.giveUp());
  socket.connect(port, address);
  await once(socket, "connect");
  return {
    ask: (message, timeoutMs = DEFAULT_TIMEOUT_MS) =>
      waiting.ask(message, timeoutMs, (copy) => socket.send(copy, () => {})),
    close: () => {
      waiting.giveUp();
      socket.close();
    },
  };
}

/** A TCP client with one connection; queries are pipelined. Rejects when the connection is refused. */
export async function openTcpClient({ port, address = "127.0.0.1" }: Endpoint): Promise<DnsClient> {
  const socket = connect({ port, host: address, noDelay: true });
  const waiting = waitingQueries();
  await once(socket, "connect");
  let buffered: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const end = 2 + buffered.readUInt16BE(0);
      waiting.settle(buffered.subarray(2, end));
      buffered = buffered.subarray(end);
    }
  });
  socket.on("error", () => {});
  socket.on("close", () => waiting.giveUp());
  return {
    ask: async (message, timeoutMs = DEFAULT_TIMEOUT_MS) => {
      if (socket.destroyed) return undefined;
      return await waiting.ask(message, timeoutMs, (copy) => {
        const prefix = Buffer.alloc(2);
        prefix.writeUInt16BE(copy.length);
        socket.write(Buffer.concat([prefix, copy]));
      });
    },
    close: () => socket.destroy(),
  };
}

/** One query over UDP from a socket of its own; undefined when no response comes within `timeoutMs`. */
export async function exchangeUdp(
  endpoint: Endpoint,
  message: Uint8Array,
  timeoutMs?: number,
): Promise<Buffer | undefined> {
  const client = await openUdpClient(endpoint);
  try {
    return await client.ask(message, timeoutMs);
  } finally {
    client.close();
  }
}

/** One query over a TCP connection of its own; undefined when the server is silent, hangs up or refuses. */
export async function exchangeTcp(
  endpoint: Endpoint,
  message: Uint8Array,
  timeoutMs?: number,
): Promise<Buffer | undefined> {
  const client = await openTcpClient(endpoint).catch(() => undefined);
  if (client === undefined) return undefined;
  try {
    return await client.ask(message, timeoutMs);
  } finally {
    client.close();
  }
}

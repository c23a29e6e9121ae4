/** Load on an HTTP API: so many clients, each sends its next request when it has the answer to the one before. */
import { Pool } from "undici";

export type ApiRequest = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: string | Buffer;
  readonly contentType?: string;
};

export type ApiTarget = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A connection for each request; otherwise connections are kept where the server keeps them. */
  readonly isEachAlone?: true;
};

export type Figures = {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

export type ApiPool = AsyncDisposable & {
  /** The body of a 2xx; throws for any other status. A server that answers 500 is asked again. */
  readonly ask: (request: ApiRequest) => Promise<string>;
  /** Answers with status 500 so far. */
  readonly failures: () => number;
};

/** PowerDNS fails where SQLite finds the database locked. More than that is another fault. */
const FAILURES_MAX = 100_000;
const PATIENCE_MS = 120_000;

/** The servers' certificates are self-made. */
export function openPool({ url, headers, isEachAlone }: ApiTarget, connections: number): ApiPool {
  const pool = new Pool(url, {
    connections,
    connect: { rejectUnauthorized: false },
    // PowerDNS has no HTTP/2: both are asked in the same way.
    allowH2: false,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
  });
  let failures = 0;
  const ask: ApiPool["ask"] = async (request) => {
    const { method, path, body, contentType = "application/json" } = request;
    for (;;) {
      const answer = await pool.request({
        method,
        path,
        headers: { ...headers, ...(body === undefined ? {} : { "content-type": contentType }) },
        ...(body === undefined ? {} : { body }),
        ...(isEachAlone === undefined ? {} : { reset: true }),
      });
      const text = await answer.body.text();
      if (answer.statusCode < 300) return text;
      if (answer.statusCode !== 500 || failures >= FAILURES_MAX) {
        throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
      }
      failures++;
    }
  };
  return {
    ask,
    failures: () => failures,
    [Symbol.asyncDispose]: () => pool.destroy(),
  };
}

export function figuresOf(timesMs: readonly number[], elapsedMs: number): Figures {
  const sorted = [...timesMs].sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  const requests = sorted.length;
  return { requests, perSecond: (requests * 1000) / elapsedMs, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}

/** Asks until `isOver` says so; `turn` counts the requests of all clients. */
export async function load(
  clients: number,
  isOver: () => boolean,
  ask: (turn: number) => Promise<unknown>,
): Promise<Figures> {
  const times: number[] = [];
  let turn = 0;
  const began = performance.now();
  const client = async () => {
    while (!isOver()) {
      const start = performance.now();
      await ask(turn++);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return figuresOf(times, performance.now() - began);
}

export function forSeconds(seconds: number): () => boolean {
  const end = performance.now() + seconds * 1000;
  return () => performance.now() >= end;
}

/** POST over connections that are kept: no redirect, no proxy, limits on time and on what is read of an answer. */
import { type LookupAddress, lookup as lookUpSystem } from "node:dns";
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import { codedError } from "../base/errors.ts";
import { DRAIN_MS, DRAINED_BYTES_MAX, IDLE_CONNECTION_MS, IN_FLIGHT_MAX } from "./limits.ts";

export type PostRequest = {
  /** http: or https:. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Until the head of the answer is there. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

export type Poster = {
  /** The status of the answer. Rejects with what the network or TLS say, or "ETIMEDOUT". */
  readonly post: (request: PostRequest) => Promise<number>;
  /** Closes the connections. */
  readonly close: () => void;
};

export function createPoster(): Poster {
  // Agents of our own: the global ones may have been told to use a proxy. Idle connections do not keep a node from ending.
  const kept = { keepAlive: true, maxFreeSockets: IN_FLIGHT_MAX, timeout: IDLE_CONNECTION_MS, lookup: createLookup() };
  const plain = new PlainAgent(kept);
  const tls = new TlsAgent({ ...kept, minVersion: "TLSv1.2" });
  return {
    post: (request) => post(request, request.url.protocol === "https:" ? tls : plain),
    close: () => {
      plain.destroy();
      tls.destroy();
    },
  };
}

function post({ url, headers, body, timeoutMs, signal }: PostRequest, agent: PlainAgent | TlsAgent): Promise<number> {
  const send = agent instanceof TlsAgent ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const length = String(body.byteLength);
    const request = send(url, {
      method: "POST",
      headers: { ...headers, "Content-Length": length, "User-Agent": "signpost" },
      agent,
      signal,
    });
    const timer = setTimeout(
      () => request.destroy(codedError("ETIMEDOUT", `no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    request.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    let isAnswered = false;
    request.on("close", () => {
      clearTimeout(timer);
      if (!isAnswered) reject(codedError("ECONNRESET", "the connection was closed without an answer"));
    });
    request.on("response", (response) => {
      isAnswered = true;
      clearTimeout(timer);
      drain(response, () => resolve(response.statusCode ?? 0));
    });
    request.end(body);
  });
}

/** Reads the body to its end, within limits: what was answered is known already. */
function drain(response: IncomingMessage, done: () => void): void {
  let length = 0;
  const timer = setTimeout(() => response.destroy(), DRAIN_MS);
  response.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > DRAINED_BYTES_MAX) response.destroy();
  });
  // The head came whole; how the rest ends changes nothing.
  response.on("error", () => {});
  response.on("close", () => {
    clearTimeout(timer);
    done();
  });
}

/**
 * The system's resolver, asked once for all who wait for the same host: a call cannot be taken back, and where none ends, each
 * attempt would leave another one behind.
 */
function createLookup(): LookupFunction {
  const running = new Map<string, Promise<readonly LookupAddress[]>>();
  const addressesOf = (host: string) => {
    const known = running.get(host);
    if (known !== undefined) return known;
    const asking = new Promise<readonly LookupAddress[]>((resolve, reject) => {
      lookUpSystem(host, { all: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)));
    }).finally(() => running.delete(host));
    running.set(host, asking);
    return asking;
  };
  return (host, { all }, callback) => {
    addressesOf(host).then(
      (addresses) => {
        const [first] = addresses;
        if (all === true) callback(null, [...addresses]);
        else if (first === undefined) callback(codedError("ENOTFOUND", "the host has no address"), "", 0);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
}

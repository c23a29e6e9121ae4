/**
 * One connection to one address: for tcp that it comes about, for HTTP the status of an answer. Written against sockets
 * and not with an HTTP client, as tens of thousands of probes each make one request on a connection of their own
 * (docs/decisions/probes.md).
 */
import { connect, type Socket } from "node:net";
import { checkServerIdentity, connect as connectTls, type SecureContext } from "node:tls";
import { ipFromText } from "../base/ip.ts";
import { failureOf } from "./network-error.ts";
import type { ProbeError } from "./probe.ts";
import { createHeadReader } from "./response-head.ts";

export type Exchange = {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
  readonly tls?: {
    readonly context: SecureContext;
    /** A host name without trailing dot, or an address, which then has to stand in the certificate. */
    readonly name: string;
  };
  /** Absent: to be connected is all. */
  readonly http?: {
    /** The whole request, in ASCII. */
    readonly request: string;
    readonly isExpected: (status: number) => boolean;
  };
  /** Until it is connected, and until the end, both from the start on; whole milliseconds. */
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
};

export type ExchangeEnd =
  | { readonly kind: "connected" }
  /** A final status, expected or not. */
  | { readonly kind: "status"; readonly status: number }
  | {
      readonly kind: "failed";
      readonly error: ProbeError;
      readonly detail: string;
      readonly wasConnected: boolean;
    };

/** Of one thread: what its probes read into, as each piece is done with when the callback returns. */
const RECEIVE_BYTES = 16_384;
const received = Buffer.alloc(RECEIVE_BYTES);

/** Begins. `done` is called once and later; the function that is returned ends it, and then `done` is not called any more. */
export function beginExchange(exchange: Exchange, done: (end: ExchangeEnd) => void): () => void {
  const { http, tls, connectTimeoutMs, timeoutMs } = exchange;
  let isConnected = false;
  let isSettled = false;
  const stop = (): void => {
    isSettled = true;
    clearTimeout(timer);
    socket.destroy();
  };
  const settle = (end: ExchangeEnd): void => {
    if (isSettled) return;
    stop();
    done(end);
  };
  const fail = (error: ProbeError, detail: string): void =>
    settle({ kind: "failed", error, detail, wasConnected: isConnected });
  const reader = createHeadReader(http?.isExpected ?? (() => false));
  const read = (piece: Buffer): void => {
    if (isSettled) return;
    const outcome = reader.feed(piece);
    if (outcome.kind === "status") settle(outcome);
    else if (outcome.kind === "fault") fail("protocol", outcome.detail);
  };
  const onTime = (): void => {
    const leftMs = timeoutMs - connectTimeoutMs;
    if (!isConnected) fail("connect_timeout", "no connection in time");
    else if (leftMs > 0 && !isLastTime) {
      isLastTime = true;
      timer = setTimeout(onTime, leftMs);
    } else fail("read_timeout", isReady ? "no whole answer in time" : "TLS was not agreed on in time");
  };
  let isLastTime = false;
  let isReady = false;
  const onReady = (): void => {
    isReady = true;
    if (http === undefined) settle({ kind: "connected" });
    else socket.write(http.request, "latin1");
  };
  // Before the timer, as it throws for a port that cannot be.
  const socket = open(exchange, read);
  let timer = setTimeout(onTime, connectTimeoutMs);
  socket.on("connect", () => {
    isConnected = true;
    if (tls === undefined) onReady();
  });
  if (tls !== undefined) socket.on("secureConnect", onReady);
  socket.on("error", (error) => {
    const { error: kind, detail } = failureOf(error);
    // The kernel gave up on a connection that there was.
    fail(kind === "connect_timeout" && isConnected ? "read_timeout" : kind, detail);
  });
  socket.on("close", () => fail("reset", "the connection ended before the answer"));
  return stop;
}

function open({ address, port, tls }: Exchange, read: (piece: Buffer) => void): Socket {
  if (tls === undefined) {
    const onread = {
      buffer: received,
      callback: (length: number): boolean => {
        read(received.subarray(0, length));
        return true;
      },
    };
    return connect({ host: address, port, noDelay: true, onread });
  }
  const { context, name } = tls;
  const socket = connectTls({
    host: address,
    port,
    secureContext: context,
    rejectUnauthorized: true,
    // An address is never sent as a name (RFC 6066 section 3).
    ...(ipFromText(name) === undefined ? { servername: name } : {}),
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ALPNProtocols: ["http/1.1"],
  });
  socket.setNoDelay(true);
  return socket.on("data", read);
}

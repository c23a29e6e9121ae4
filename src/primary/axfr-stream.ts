/**
 * One transfer on its connection. A message is made ready and signed only when the connection has room for it, and a client
 * that takes nothing is given up.
 */
import { uint16At } from "../dns/tsig-record.ts";
import { messageFor, type TransferRequest } from "./axfr-request.ts";
import { TRANSFER_MS, TRANSFER_STALL_MS, TRANSFER_UNTAKEN_BYTES } from "./limits.ts";

/** Signs the messages of one answer in turn: the first with the request's MAC, further ones with the one before (RFC 8945 section 5.3.1). */
export type TransferSigner = { readonly sign: (message: Uint8Array) => Uint8Array };

export type TransferConnection = {
  /** Takes a message, without its length; the last one is no more than said to be so. */
  readonly send: (message: Uint8Array, isLast: boolean) => void;
  /** The transfer ends before its last message: the connection is to be closed, so that the client does not take a part for the whole. */
  readonly cut: () => void;
};

export type TransferOutcome = "done" | "gone" | "stalled" | "too long";

/** What was handed to a connection: RRs without OPT and TSIG, the SOA as often as it is there; bytes without the lengths of messages. */
export type TransferSent = { readonly messages: number; readonly records: number; readonly bytes: number };

export type TransferStream = {
  readonly sent: () => TransferSent;
  /** The client's system has taken so many bytes of what was sent. */
  readonly taken: (bytes: number) => void;
  /** The client has gone. */
  readonly cancel: () => void;
  /** Gives the transfer up where its time has passed. */
  readonly sweep: () => void;
};

export type TransferStreamOptions = {
  readonly request: TransferRequest;
  /** As axfr-encode.ts makes them. */
  readonly messages: readonly Uint8Array[];
  /** Undefined: the request was not signed. */
  readonly signer: TransferSigner | undefined;
  readonly connection: TransferConnection;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Called once, when the client has taken everything, or never will. */
  readonly onEnd: (outcome: TransferOutcome) => void;
};

/** Of the header (RFC 1035 section 4.1.1). */
const ANSWER_COUNT_AT = 6;

export function startTransferStream(options: TransferStreamOptions): TransferStream {
  const { request, messages, signer, connection, now, onEnd } = options;
  const startedMs = now();
  let movedMs = startedMs;
  let next = 0;
  let untaken = 0;
  let records = 0;
  let bytes = 0;
  let hasEnded = false;
  const end = (outcome: TransferOutcome) => {
    if (hasEnded) return;
    hasEnded = true;
    if (outcome === "stalled" || outcome === "too long") connection.cut();
    onEnd(outcome);
  };
  const pump = () => {
    while (!hasEnded && next < messages.length && untaken < TRANSFER_UNTAKEN_BYTES) {
      const message = messageFor(request, messages[next]!, next === 0);
      next += 1;
      const signed = signer === undefined ? message : signer.sign(message);
      untaken += signed.length;
      bytes += signed.length;
      records += uint16At(message, ANSWER_COUNT_AT);
      connection.send(signed, next === messages.length);
    }
    if (next === messages.length && untaken <= 0) end("done");
  };
  pump();
  return {
    sent: () => ({ messages: next, records, bytes }),
    taken: (takenBytes) => {
      if (hasEnded) return;
      untaken -= takenBytes;
      movedMs = now();
      pump();
    },
    cancel: () => end("gone"),
    sweep: () => {
      const nowMs = now();
      if (nowMs - movedMs >= TRANSFER_STALL_MS) end("stalled");
      else if (nowMs - startedMs >= TRANSFER_MS) end("too long");
    },
  };
}

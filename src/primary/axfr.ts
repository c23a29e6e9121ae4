/**
 * Transfers of zones to secondaries (RFC 5936): from a request that may be answered to the last message on its connection.
 * A bounded number is under way at once, a bounded number waits.
 */
import { RCODE } from "../dns/codes.ts";
import { type AliasLookup, aliasRecords } from "./axfr-alias.ts";
import { type EncodedTransfer, encodeRest } from "./axfr-encode.ts";
import { type TransferRequest, transferError } from "./axfr-request.ts";
import {
  startTransferStream,
  type TransferConnection,
  type TransferOutcome,
  type TransferSent,
  type TransferSigner,
  type TransferStream,
} from "./axfr-stream.ts";
import {
  TRANSFER_WAIT_MS,
  TRANSFERS_MAX,
  TRANSFERS_OF_CLIENT_MAX,
  TRANSFERS_WAITING_MAX,
  TRANSFERS_WAITING_OF_CLIENT_MAX,
} from "./limits.ts";

/** A zone as it stands, encoded; "absent": this server does not answer for it. */
export type ZoneForTransfer =
  | { readonly kind: "zone"; readonly transfer: EncodedTransfer }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly detail: string };

/** Who asks, and is bounded as one: `client` is any text that others do not have. */
export type TransferClientConnection = TransferConnection & { readonly client: string };

/** What came of a transfer that was allowed. Where nothing of the zone was sent, all of it is 0 and there is no serial. */
export type TransferReport = TransferSent & {
  /** "too many": it was told SERVFAIL, at once or because its turn did not come. */
  readonly outcome: TransferOutcome | "too many";
  readonly serial: number | undefined;
  /** From the request to the end. */
  readonly milliseconds: number;
};

export type TransfersOptions = {
  /** The zone with that lower-case wire name. */
  readonly encode: (zone: Uint8Array) => Promise<ZoneForTransfer>;
  readonly lookUpAlias: AliasLookup;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** A zone that could not be encoded. */
  readonly onFailure: (zone: Uint8Array, detail: string) => void;
};

export type TransferStats = {
  readonly running: number;
  readonly waiting: number;
  /** Since the start; `refused` found too many others, `failed` could not be encoded. */
  readonly done: number;
  readonly cut: number;
  readonly refused: number;
  readonly failed: number;
  /** Of messages of transfers, without their lengths. */
  readonly bytes: number;
};

export type Transfers = {
  /**
   * Answers a request of somebody who may have the zone, in its turn. One that finds too many others, or waits too long, is
   * told SERVFAIL: a secondary comes again. `onEnd` is called once, but for zones that are not here or cannot be encoded.
   */
  readonly begin: (
    request: TransferRequest,
    signer: TransferSigner | undefined,
    connection: TransferClientConnection,
    onEnd: (report: TransferReport) => void,
  ) => Pick<TransferStream, "taken" | "cancel">;
  /** To be called every second or so: ends what has taken too long. */
  readonly sweep: () => void;
  readonly stats: () => TransferStats;
};

type Transfer = {
  readonly request: TransferRequest;
  readonly signer: TransferSigner | undefined;
  readonly connection: TransferClientConnection;
  readonly onEnd: (report: TransferReport) => void;
  readonly sinceMs: number;
  serial: number | undefined;
  stream: TransferStream | undefined;
  isOver: boolean;
};

type State = {
  readonly options: TransfersOptions;
  readonly running: Set<Transfer>;
  /** In the order in which they came. */
  readonly waiting: Set<Transfer>;
  readonly counts: { done: number; cut: number; refused: number; failed: number; bytes: number };
};

export function createTransfers(options: TransfersOptions): Transfers {
  const counts = { done: 0, cut: 0, refused: 0, failed: 0, bytes: 0 };
  const state: State = { options, running: new Set(), waiting: new Set(), counts };
  return {
    begin: (request, signer, connection, onEnd) => {
      const begun = { sinceMs: options.now(), serial: undefined, stream: undefined, isOver: false };
      const transfer: Transfer = { request, signer, connection, onEnd, ...begun };
      if (mayRun(state, transfer)) run(state, transfer);
      else if (mayWait(state, transfer)) state.waiting.add(transfer);
      else refuse(state, transfer);
      return handleOf(state, transfer);
    },
    sweep: () => {
      for (const { stream } of state.running) stream?.sweep();
      for (const transfer of state.waiting) {
        if (options.now() - transfer.sinceMs < TRANSFER_WAIT_MS) return;
        refuse(state, transfer);
      }
    },
    stats: () => ({ running: state.running.size, waiting: state.waiting.size, ...counts }),
  };
}

/** One client that takes its zones slowly, or never, leaves places to others. */
function mayRun({ running }: State, transfer: Transfer): boolean {
  return running.size < TRANSFERS_MAX && countOf(running, transfer) < TRANSFERS_OF_CLIENT_MAX;
}

function mayWait({ waiting }: State, transfer: Transfer): boolean {
  return waiting.size < TRANSFERS_WAITING_MAX && countOf(waiting, transfer) < TRANSFERS_WAITING_OF_CLIENT_MAX;
}

/** Those of the same client. */
function countOf(transfers: ReadonlySet<Transfer>, { connection }: Transfer): number {
  let count = 0;
  for (const other of transfers) if (other.connection.client === connection.client) count += 1;
  return count;
}

function handleOf(state: State, transfer: Transfer): Pick<TransferStream, "taken" | "cancel"> {
  return {
    taken: (bytes) => transfer.stream?.taken(bytes),
    cancel: () => {
      if (transfer.stream !== undefined) transfer.stream.cancel();
      else end(state, transfer, "gone");
    },
  };
}

function run(state: State, transfer: Transfer): void {
  state.running.add(transfer);
  messagesOf(state, transfer).then(
    (messages) => {
      if (transfer.isOver) return;
      if (typeof messages === "number") return answer(state, transfer, messages);
      const { request, signer, connection } = transfer;
      const { now } = state.options;
      let outcome: TransferOutcome | undefined;
      const onEnd = (given: TransferOutcome) => {
        outcome = given;
        if (transfer.stream !== undefined) end(state, transfer, given);
      };
      transfer.stream = startTransferStream({ request, messages, signer, connection, now, onEnd });
      if (outcome !== undefined) end(state, transfer, outcome);
    },
    (error: unknown) => {
      state.options.onFailure(transfer.request.zone, error instanceof Error ? error.message : String(error));
      if (transfer.isOver) return;
      state.counts.failed += 1;
      answer(state, transfer, RCODE.SERVFAIL);
    },
  );
}

/** All messages, or the RCODE of an answer that has none. */
async function messagesOf({ options, counts }: State, waiting: Transfer): Promise<readonly Uint8Array[] | number> {
  const { request } = waiting;
  const encoded = await options.encode(request.zone);
  switch (encoded.kind) {
    case "absent":
      // RFC 5936 section 2.2.1: not authoritative.
      return RCODE.NOTAUTH;
    case "failed":
      counts.failed += 1;
      options.onFailure(request.zone, encoded.detail);
      return RCODE.SERVFAIL;
    case "zone": {
      const { transfer } = encoded;
      waiting.serial = transfer.serial;
      if (transfer.aliases.length === 0) return transfer.messages;
      const records = await aliasRecords(transfer.aliases, options.lookUpAlias);
      return [...transfer.messages, ...encodeRest(transfer, records)];
    }
  }
}

function refuse(state: State, transfer: Transfer): void {
  state.counts.refused += 1;
  answer(state, transfer, RCODE.SERVFAIL);
  report(state, transfer, "too many");
}

/** An answer without the zone. */
function answer(state: State, transfer: Transfer, rcode: number): void {
  const { request, signer, connection } = transfer;
  const message = transferError(request, rcode);
  connection.send(signer === undefined ? message : signer.sign(message), true);
  leave(state, transfer);
}

function end(state: State, transfer: Transfer, outcome: TransferOutcome): void {
  if (transfer.isOver) return;
  if (outcome === "done") state.counts.done += 1;
  else state.counts.cut += 1;
  state.counts.bytes += transfer.stream?.sent().bytes ?? 0;
  leave(state, transfer);
  report(state, transfer, outcome);
}

const NOTHING_SENT: TransferSent = { messages: 0, records: 0, bytes: 0 };

function report({ options }: State, transfer: Transfer, outcome: TransferReport["outcome"]): void {
  const { stream, serial, sinceMs, onEnd } = transfer;
  const milliseconds = Math.round(options.now() - sinceMs);
  onEnd({ outcome, ...(stream?.sent() ?? NOTHING_SENT), serial: stream && serial, milliseconds });
}

/** Makes room for the next one. */
function leave(state: State, transfer: Transfer): void {
  transfer.isOver = true;
  state.waiting.delete(transfer);
  if (!state.running.delete(transfer)) return;
  const next = state.waiting.values().find((waiting) => mayRun(state, waiting));
  if (next === undefined) return;
  state.waiting.delete(next);
  run(state, next);
}

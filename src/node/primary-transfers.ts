/** Transfers between the connections of their clients, which another thread has, and `control`, which has the zones encoded. */
import { PART, type Part } from "../listen/answer-frames.ts";
import { recordAddress, recordToken } from "../listen/handover-record.ts";
import { clientKey } from "../listen/stream.ts";
import {
  createTransfers,
  type TransferClientConnection,
  type TransferReport,
  type TransferStats,
  type ZoneForTransfer,
} from "../primary/axfr.ts";
import type { AliasLookup } from "../primary/axfr-alias.ts";
import type { TransferRequest } from "../primary/axfr-request.ts";
import { TRANSFER_ENCODE_MS, TRANSFER_ENCODINGS_MAX } from "../primary/limits.ts";
import type { FromPrimary } from "../primary/messages.ts";
import type { Asked } from "./resolve-clients.ts";
import type { FlowEvents } from "./resolve-replies.ts";

export type ServedTransfersOptions = {
  /** False: there is nobody to tell. */
  readonly tell: (message: FromPrimary) => boolean;
  readonly addPart: (thread: number, record: Uint8Array, message: Uint8Array, part: Part) => void;
  readonly lookUpAlias: AliasLookup;
  readonly now: () => number;
  /** The first message of an answer. */
  readonly onAnswer: (asked: Asked, message: Uint8Array) => void;
  readonly onFailure: (zone: Uint8Array, detail: string) => void;
  /** What came of a transfer. */
  readonly onEnd: (asked: Asked, zone: Uint8Array, report: TransferReport) => void;
  /** Something is to be sent. */
  readonly onReady: () => void;
};

export type ServedTransfers = {
  readonly begin: (asked: Asked, request: TransferRequest) => void;
  /** `control` gives what was asked for. */
  readonly encoded: (id: number, zone: ZoneForTransfer) => void;
  /** Whoever encodes is no more. */
  readonly failEncoding: () => void;
  readonly flows: FlowEvents;
  readonly sweep: () => void;
  readonly stats: () => TransferStats;
};

/** Messages that a client is to take. */
type Flow = {
  readonly thread: number;
  readonly taken: (bytes: number) => void;
  readonly cancel: () => void;
};

type Encoding = { readonly sinceMs: number; readonly give: (zone: ZoneForTransfer) => void };

const NO_BYTES = new Uint8Array(0);

export function createServedTransfers(options: ServedTransfersOptions): ServedTransfers {
  const { now } = options;
  /** By id, in the order in which they were asked for. */
  const encodings = new Map<number, Encoding>();
  const flows = new Map<string, Flow>();
  let lastId = 0;

  const settle = (id: number, zone: ZoneForTransfer) => {
    const encoding = encodings.get(id);
    encodings.delete(id);
    encoding?.give(zone);
  };
  const transfers = createTransfers({
    encode: (zone) =>
      new Promise((give) => {
        if (encodings.size >= TRANSFER_ENCODINGS_MAX)
          return give({ kind: "failed", detail: "too many are being encoded" });
        lastId += 1;
        const isTold = options.tell({ kind: "encode", id: lastId, zone });
        if (isTold) encodings.set(lastId, { sinceMs: now(), give });
        else give({ kind: "failed", detail: "the control thread is away" });
      }),
    lookUpAlias: options.lookUpAlias,
    now,
    onFailure: options.onFailure,
  });
  return {
    begin: (asked, request) => {
      const key = flowKey(asked.thread, recordToken(asked.record));
      // The thread that has the connection waits longer for what has begun.
      options.addPart(asked.thread, asked.record, NO_BYTES, PART.MORE);
      const { connection, untaken, isSent } = connectionOf(options, asked, () => flows.delete(key));
      // It may send, and so end, before it has begun to be known.
      let handle: Pick<Flow, "taken" | "cancel"> | undefined;
      flows.set(key, {
        thread: asked.thread,
        taken: (bytes) => {
          untaken.bytes -= bytes;
          handle?.taken(bytes);
          if (isSent() && untaken.bytes <= 0) flows.delete(key);
        },
        cancel: () => {
          flows.delete(key);
          handle?.cancel();
        },
      });
      handle = transfers.begin(request, asked.signing, connection, (report) =>
        options.onEnd(asked, request.zone, report),
      );
    },
    encoded: (id, zone) => {
      settle(id, zone);
    },
    failEncoding: () => {
      for (const id of [...encodings.keys()]) settle(id, { kind: "failed", detail: "the control thread has ended" });
    },
    flows: {
      onTaken: (thread, token, bytes) => {
        flows.get(flowKey(thread, token))?.taken(bytes);
        options.onReady();
      },
      onGone: (thread, token) => flows.get(flowKey(thread, token))?.cancel(),
      onBegun: (thread) => {
        for (const flow of [...flows.values()]) {
          if (flow.thread === thread) flow.cancel();
        }
      },
    },
    sweep: () => {
      for (const [id, { sinceMs }] of [...encodings]) {
        if (now() - sinceMs < TRANSFER_ENCODE_MS) break;
        settle(id, { kind: "failed", detail: "encoding it took too long" });
      }
      transfers.sweep();
    },
    stats: transfers.stats,
  };
}

function connectionOf({ addPart, onAnswer, onReady }: ServedTransfersOptions, asked: Asked, onCut: () => void) {
  const { thread, record } = asked;
  const untaken = { bytes: 0 };
  let isFirst = true;
  let isSent = false;
  const connection: TransferClientConnection = {
    client: clientKey(recordAddress(record)),
    send: (message, isLast) => {
      untaken.bytes += message.length;
      isSent = isLast;
      addPart(thread, record, message, isLast ? PART.LAST : PART.MORE);
      if (isFirst) onAnswer(asked, message);
      isFirst = false;
      onReady();
    },
    cut: () => {
      addPart(thread, record, NO_BYTES, PART.CUT);
      onCut();
      onReady();
    },
  };
  return { connection, untaken, isSent: () => isSent };
}

function flowKey(thread: number, token: number): string {
  return `${thread} ${token}`;
}

/** Puts together what the thread that resolves does for updaters and secondaries. */
import { ipToText, unmappedIp } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { nameToText } from "../dns/name.ts";
import type { SharedImage } from "../image/shared.ts";
import { limitFailures } from "../listen/failure-reports.ts";
import { recordAddress } from "../listen/handover-record.ts";
import { canonicalName } from "../model/names.ts";
import type { FromPrimary, ToPrimary } from "../primary/messages.ts";
import { createLimitedLog } from "./limited-log.ts";
import type { AskOwn } from "./own-answers.ts";
import { createPrimaryGate, isZone, type PrimaryGate } from "./primary-gate.ts";
import { REFUSED_LINES_MAX, REFUSED_LINES_MS } from "./primary-limits.ts";
import { createServedTransfers, type ServedTransfersOptions } from "./primary-transfers.ts";
import { type AliasQuestionsOptions, createAliasQuestions } from "./primary-transfers-alias.ts";
import { createUpdates } from "./primary-updates.ts";
import type { Asked, Clients } from "./resolve-clients.ts";
import type { FlowEvents, Replies } from "./resolve-replies.ts";

export type PrimaryOptions = {
  readonly shared: SharedImage;
  /** A place among the readers of the image for questions of the node's own. */
  readonly ownThread: number;
  readonly maxUdpSize: number;
  readonly clients: Pick<Clients, "serveSigned" | "answerWith" | "reply" | "note">;
  readonly replies: Pick<Replies, "addPart">;
  readonly askOwn: AskOwn;
  /** What resolving needs. */
  readonly resolving: Pick<AliasQuestionsOptions, "resolver" | "position" | "knowsRoute" | "isOurs">;
  /** False: there is nobody to tell. */
  readonly tell: (message: FromPrimary) => boolean;
  readonly hearControl: () => boolean;
  /** Something is to be done: `serve` is to be called, and what was answered is to be sent. */
  readonly onReady: () => void;
  readonly log: Log;
};

export type Primary = Pick<PrimaryGate, "take" | "lost"> & {
  readonly hear: (message: ToPrimary) => void;
  readonly flows: FlowEvents;
  /** Whether there is more to do. */
  readonly serve: (most: number) => boolean;
  /** To be called every second or so. */
  readonly sweep: () => void;
  /** All that wait are told so. */
  readonly endAll: () => void;
};

export function createPrimary(options: PrimaryOptions): Primary {
  const { clients, tell, onReady, log } = options;
  const now = () => performance.now();
  const failed = (what: string) =>
    limitFailures((name, detail) => log("warn", `${what} failed`, { name: nameToText(name), detail }));
  const aliases = createAliasQuestions({
    shared: options.shared,
    thread: options.ownThread,
    ...options.resolving,
    now,
    onReady,
    onFailure: limitFailures((_, detail) => log("error", `finding the addresses of an ALIAS failed: ${detail}`)),
  });
  const updates = createUpdates({ tell, now });
  const transfers = createServedTransfers({
    tell,
    addPart: options.replies.addPart,
    lookUpAlias: aliases.lookUp,
    now,
    onAnswer: (asked: Asked, message) => clients.note(asked, message),
    onFailure: failed("a transfer"),
    onEnd: logTransfers(log, now),
    onReady,
  });
  const complaints = createLimitedLog({
    ...{ log, linesMax: REFUSED_LINES_MAX, whileMs: REFUSED_LINES_MS, now },
    leftOut: { message: "messages that were refused and are not in the log", field: "messages" },
  });
  const gate = createPrimaryGate({
    clients,
    updates,
    transfers,
    hearControl: options.hearControl,
    isOwnZone: (zone) => isZone(options.askOwn, zone),
    udpSize: options.maxUdpSize,
    nowSeconds: () => Math.floor(Date.now() / 1_000),
    complain: (message, address, fields) =>
      complaints("info", message, { address: ipToText(unmappedIp(address)), ...fields }),
    onReady,
  });
  return {
    take: gate.take,
    lost: gate.lost,
    hear: (message) => {
      if (message.kind !== "ask-primary-figures") return gate.hear(message);
      tell({ kind: "told-primary-figures", id: message.id, figures: gate.figures() });
    },
    flows: transfers.flows,
    serve: aliases.serve,
    sweep: () => {
      updates.sweep();
      transfers.sweep();
      aliases.sweep();
    },
    endAll: () => {
      aliases.endAll();
      gate.lost();
    },
  };
}

/** One line a transfer, for whoever wonders which serial a secondary was given, and why it took so long. */
function logTransfers(log: Log, now: () => number): ServedTransfersOptions["onEnd"] {
  const limited = createLimitedLog({
    ...{ log, linesMax: REFUSED_LINES_MAX, whileMs: REFUSED_LINES_MS, now },
    leftOut: { message: "transfers that ended and are not in the log", field: "transfers" },
  });
  return ({ record, signing }, zone, { outcome, ...sent }) => {
    const message = outcome === "done" ? "a zone was transferred" : "a transfer did not come to its end";
    const client = {
      address: ipToText(unmappedIp(recordAddress(record))),
      key: signing && canonicalName(signing.keyName),
    };
    limited("info", message, {
      zone: canonicalName(zone),
      ...client,
      ...(outcome !== "done" && { why: outcome }),
      ...sent,
    });
  };
}

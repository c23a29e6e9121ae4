/**
 * Messages that need keys or `control`: whose signature is it, may it be done, and who does it. What is a plain query under its
 * signature goes back to where queries are answered.
 */
import { type Cidr, cidrHolds, unmappedIp } from "../base/ip.ts";
import type { LogFields } from "../base/log.ts";
import { OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import {
  readTsig,
  refusalAnswer,
  signResponse,
  TSIG_ERROR,
  type TsigRefusal,
  type TsigRequest,
  tsigBytes,
} from "../dns/tsig.ts";
import { parseUpdate } from "../dns/update.ts";
import { HANDOVER_KIND } from "../image/handover.ts";
import { recordAddress, recordKind, recordPort, recordQuery, recordTransport } from "../listen/handover-record.ts";
import { canonicalName } from "../model/names.ts";
import { readTransferRequest } from "../primary/axfr-request.ts";
import type { PrimaryFigures, PrimaryKey, PrimarySettings, ToPrimary } from "../primary/messages.ts";
import { mayTransfer } from "../primary/transfer-acl.ts";
import type { ServedTransfers } from "./primary-transfers.ts";
import type { Updates } from "./primary-updates.ts";
import { type Asked, askedMessage, type Clients } from "./resolve-clients.ts";

export type PrimaryGateOptions = {
  readonly clients: Pick<Clients, "serveSigned" | "answerWith" | "reply">;
  readonly updates: Updates;
  readonly transfers: ServedTransfers;
  /** Hears what `control` has said and nobody has heard yet; false: nothing. */
  readonly hearControl: () => boolean;
  /** Whether a zone of ours has this lower-case wire name. */
  readonly isOwnZone: (zone: Uint8Array) => boolean;
  /** UDP size that OPT tells clients. */
  readonly udpSize: number;
  /** Since 1970. */
  readonly nowSeconds: () => number;
  /** Hears why something was refused, as often as anybody asks for it. */
  readonly complain: Complain;
  /** Something is to be sent. */
  readonly onReady: () => void;
};

/** `address` is the client's, `fields` never have a secret. */
export type Complain = (message: string, address: Uint8Array, fields: LogFields) => void;

export type PrimaryGate = {
  /** What an answerer has said to be for ROUTE.PRIMARY. */
  readonly take: (asked: Asked) => void;
  /** What `control` says; figures are asked of `figures`. */
  readonly hear: (message: Exclude<ToPrimary, { readonly kind: "ask-primary-figures" }>) => void;
  /** `control` is no more. */
  readonly lost: () => void;
  readonly figures: () => PrimaryFigures;
};

type Signatures = { -readonly [Outcome in keyof PrimaryFigures["signatures"]]: number };

type State = PrimaryGateOptions & {
  settings: PrimarySettings | undefined;
  /** By name: bytes as text. */
  readonly keys: Map<string, PrimaryKey>;
  readonly signatures: Signatures;
  /** Answers to updates, by RCODE. */
  readonly updateRcodes: Map<number, number>;
  denied: number;
  malformed: number;
};

export function createPrimaryGate(options: PrimaryGateOptions): PrimaryGate {
  const state: State = {
    ...options,
    settings: undefined,
    keys: new Map(),
    signatures: { ok: 0, badkey: 0, badsig: 0, badtime: 0, badtrunc: 0, formerr: 0 },
    updateRcodes: new Map(),
    denied: 0,
    malformed: 0,
  };
  const { updates, transfers } = options;
  return {
    take: (asked) => take(state, asked),
    hear: (message) => {
      switch (message.kind) {
        case "primary-settings":
          setSettings(state, message.settings);
          break;
        case "updated":
          updates.answered(message.id, message.rcode);
          options.onReady();
          break;
        case "encoded":
          transfers.encoded(message.id, message.zone);
      }
    },
    lost: () => {
      updates.failAll();
      transfers.failEncoding();
      options.onReady();
    },
    figures: () => ({
      signatures: { ...state.signatures },
      updates: {
        underWay: updates.underWay(),
        byRcode: [...state.updateRcodes].map(([rcode, count]) => ({ rcode, count })),
        ...updates.counts,
      },
      transfers: { ...transfers.stats(), denied: state.denied, malformed: state.malformed },
    }),
  };
}

function setSettings(state: State, settings: PrimarySettings): void {
  state.settings = settings;
  state.keys.clear();
  for (const key of settings.keys) state.keys.set(nameKey(key.name), key);
}

function nameKey(name: Uint8Array): string {
  return Buffer.from(name.buffer, name.byteOffset, name.length).toString("latin1");
}

function take(state: State, asked: Asked): void {
  // A key that `control` has told of counts from then on.
  while (state.hearControl());
  // A thread that has begun anew knows no key yet, and must not say that there is none.
  if (state.settings === undefined) state.clients.answerWith(asked, RCODE.SERVFAIL);
  else if (asked.signing !== undefined) serve(state, state.settings, asked);
  else readSignature(state, state.settings, asked);
}

function readSignature(state: State, settings: PrimarySettings, asked: Asked): void {
  const seconds = state.nowSeconds();
  const request = readTsig(recordQuery(asked.record), (name) => state.keys.get(nameKey(name)), seconds);
  switch (request.kind) {
    case "unsigned":
      serve(state, settings, asked);
      break;
    case "refused":
      state.signatures[refusalOutcome(request.error)] += 1;
      state.complain("a signature is not good", recordAddress(asked.record), signatureFields(request, seconds));
      state.clients.reply(asked, refusalAnswer(request, seconds));
      break;
    case "verified":
      state.signatures.ok += 1;
      state.clients.serveSigned(signedBy(state, asked, request));
  }
}

/** What a person looks for who asks why: the wrong name, the wrong secret, or how far a clock is behind ours. */
function signatureFields({ error, record }: TsigRefusal, nowSeconds: number): LogFields {
  return {
    outcome: refusalOutcome(error),
    ...(record !== undefined && { key: canonicalName(record.name) }),
    ...(record !== undefined && error === TSIG_ERROR.BADTIME && { behind_seconds: nowSeconds - record.timeSeconds }),
  };
}

function refusalOutcome(error: number): keyof Signatures {
  switch (error) {
    case TSIG_ERROR.BADKEY:
      return "badkey";
    case TSIG_ERROR.BADSIG:
      return "badsig";
    case TSIG_ERROR.BADTIME:
      return "badtime";
    case TSIG_ERROR.BADTRUNC:
      return "badtrunc";
    default:
      return "formerr";
  }
}

function signedBy(state: State, asked: Asked, request: Extract<TsigRequest, { kind: "verified" }>): Asked {
  const { key, mac, bytes } = request;
  const signing = {
    message: bytes,
    keyName: key.name,
    bytes: tsigBytes(key),
    hasManagementView: state.keys.get(nameKey(key.name))?.hasManagementView ?? false,
    sign: signResponse(key, mac, state.nowSeconds).sign,
  };
  return { thread: asked.thread, record: asked.record, sinceMs: asked.sinceMs, signing };
}

/** Of a message that is an update or a transfer; any other was answered before it came here. */
function serve(state: State, settings: PrimarySettings, asked: Asked): void {
  const opcode = (askedMessage(asked)[2]! >> 3) & 15;
  if (opcode === OPCODE.UPDATE) update(state, settings, asked);
  else transfer(state, settings, asked);
}

function update(state: State, settings: PrimarySettings, asked: Asked): void {
  const { clients, updates } = state;
  const message = askedMessage(asked);
  const answer = (rcode: number) => {
    state.updateRcodes.set(rcode, (state.updateRcodes.get(rcode) ?? 0) + 1);
    clients.answerWith(asked, rcode);
  };
  const parsed = parseUpdate(message);
  const address = recordAddress(asked.record);
  const { enabled, unsignedNetworks } = settings.updates;
  if (parsed.kind === "refused") answer(parsed.rcode);
  else if (!enabled) answer(RCODE.REFUSED);
  else if (asked.signing === undefined && !holdsAddress(unsignedNetworks, address)) {
    // Whoever may change nothing has no business with `control`, and learns nothing by prerequisites.
    const rcode = state.isOwnZone(parsed.zone) ? RCODE.REFUSED : RCODE.NOTAUTH;
    state.complain("an unsigned update was refused", address, { zone: canonicalName(parsed.zone), rcode });
    answer(rcode);
  } else {
    const keyName = asked.signing && canonicalName(asked.signing.keyName);
    updates.begin({ keyName, address: address.slice(), message: message.slice() }, samenessOf(asked), answer);
  }
}

function holdsAddress(networks: readonly Cidr[], address: Uint8Array): boolean {
  return networks.some((network) => cidrHolds(network, unmappedIp(address)));
}

/** What a client sends again over UDP is the same from the same socket; over a stream nothing is sent again. */
function samenessOf({ record }: Asked): string | undefined {
  if (recordKind(record) !== HANDOVER_KIND.DATAGRAM && recordTransport(record) !== 0) return undefined;
  const address = Buffer.from(recordAddress(record)).toString("hex");
  return `${address} ${recordPort(record)} ${Buffer.from(recordQuery(record)).toString("latin1")}`;
}

function transfer(state: State, settings: PrimarySettings, asked: Asked): void {
  const { clients, transfers } = state;
  const reading = readTransferRequest(askedMessage(asked), state.udpSize);
  if (reading.kind === "refused") {
    state.malformed += 1;
    clients.answerWith(asked, reading.rcode);
    return;
  }
  const { request } = reading;
  const key = asked.signing && state.keys.get(nameKey(asked.signing.keyName));
  const client = { address: recordAddress(asked.record), key };
  if (mayTransfer(settings.transfers, client, canonicalName(request.zone))) {
    transfers.begin(asked, request);
    return;
  }
  state.denied += 1;
  // As for updates: what is not here is not here for anybody (RFC 5936 section 2.2.1).
  const isElsewhere = settings.transfers.enabled && !state.isOwnZone(request.zone);
  const rcode = isElsewhere ? RCODE.NOTAUTH : RCODE.REFUSED;
  const zone = canonicalName(request.zone);
  state.complain("a transfer was refused", client.address, { zone, rcode, key: key && canonicalName(key.name) });
  clients.answerWith(asked, rcode);
}

/** Whether an answer of our zones to SOA begins with that of this very name. */
export function isZone(
  askOwn: (name: Uint8Array, type: number) => { readonly answers: readonly { readonly type: number }[] } | undefined,
  zone: Uint8Array,
): boolean {
  return askOwn(zone, RRTYPE.SOA)?.answers[0]?.type === RRTYPE.SOA;
}

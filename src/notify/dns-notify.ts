/**
 * Tells secondaries of changes (RFC 1996): changes of a zone within the debounce time share one NOTIFY, each target is told
 * until it answers, and a later change takes the place of one that is still being told. At the start every zone is announced,
 * little by little: what was written while this node was away, or was still being told when it ended, nobody else may have told.
 */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { TsigKey } from "../dns/tsig.ts";
import {
  NOTIFY_ATTEMPTS_MAX,
  NOTIFY_BURST,
  NOTIFY_BURST_PAUSE_MS,
  NOTIFY_COMPLAINT_PAUSE_MS,
  NOTIFY_PAUSES_MS,
  NOTIFY_PENDING_MAX,
  NOTIFY_PUBLISHED_MS,
  NOTIFY_SILENT_ATTEMPTS,
  NOTIFY_START_AT_ONCE,
  NOTIFY_START_ATTEMPTS_MAX,
  NOTIFY_START_PAUSE_MS,
  NOTIFY_START_PENDING_MAX,
} from "./dns-notify-limits.ts";
import { type NotifySoa, notifyMessage, readNotifyAnswer } from "./dns-notify-message.ts";

/** An address or a host name, and a port. */
export type NotifyTarget = { readonly host: string; readonly port: number };

export type DnsNotifySettings = {
  /** None: nobody is told. */
  readonly targets: readonly NotifyTarget[];
  readonly debounceMs: number;
  /** "missing": there is to be one, and NOTIFY is not sent without. */
  readonly key: TsigKey | "none" | "missing";
};

/** Time as NOTIFY has it; a test has its own. */
export type NotifyTimes = {
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  /** The result takes it back. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
};

export type DnsNotifyOptions = {
  readonly settings: () => DnsNotifySettings;
  /** The SOA that a zone has now; undefined: there is no such zone, or it does not answer. */
  readonly soaOf: (zone: string) => NotifySoa | undefined;
  /** Resolves when all changes so far are answered by this node: a secondary asks for the SOA first. */
  readonly published: () => Promise<void>;
  /** The targets are about to be told of the zone, and will ask for it. */
  readonly onAnnounced: (zone: string) => void;
  /** Sends a datagram; what cannot be sent is lost, as others are. */
  readonly send: (bytes: Uint8Array, address: string, port: number) => void;
  /** The addresses of a host name, or the address itself. */
  readonly resolveHost: (host: string) => Promise<readonly string[]>;
  readonly times: NotifyTimes;
  /** A message id, which nobody can foresee. */
  readonly randomId: () => number;
  readonly log: Log;
};

export type DnsNotifyStats = {
  /** Messages; those that were answered; zones that a target was given up for, or refused, or was not told of. */
  readonly sent: number;
  readonly answered: number;
  readonly failed: number;
  readonly pending: number;
};

export type DnsNotify = Disposable & {
  /** The zone, by its name, has another serial. */
  readonly changed: (zone: string) => void;
  /** Announces zones by their names, as they come out of `zones`, within limits on their rate. Called once, at the start. */
  readonly announceAll: (zones: Iterator<string>) => Promise<void>;
  /** A datagram from whatever address. Any bytes may be passed. */
  readonly heard: (bytes: Uint8Array, address: string, port: number) => void;
  readonly stats: () => DnsNotifyStats;
};

/** One zone that one target is to be told of. */
type Pending = {
  readonly zone: string;
  readonly target: NotifyTarget;
  readonly attemptsMax: number;
  attempts: number;
  /** Of the attempt under way; its answer is known by id, address and port. */
  awaited: Awaited | undefined;
  cancelTimer: () => void;
};

type Awaited = {
  readonly id: number;
  readonly address: string;
  readonly soa: NotifySoa;
  readonly signed: { readonly key: TsigKey; readonly mac: Uint8Array } | undefined;
};

type State = {
  readonly options: DnsNotifyOptions;
  /** Zones whose debounce time runs, with what takes it back. */
  readonly debouncing: Map<string, () => void>;
  readonly pending: Map<string, Pending>;
  /** Attempts that wait for their place in a burst. */
  readonly due: Pending[];
  readonly byAnswer: Map<string, Pending>;
  /** When each target was complained about. */
  readonly complained: Map<string, number>;
  readonly counts: { sent: number; answered: number; failed: number };
  /** How many more may go before the next burst. */
  burstLeft: number;
  cancelBurst: (() => void) | undefined;
  /** Takes back what goes on with the announcements of the start. */
  cancelStart: (() => void) | undefined;
  hasEnded: boolean;
};

export function createDnsNotify(options: DnsNotifyOptions): DnsNotify {
  const state: State = {
    options,
    debouncing: new Map(),
    pending: new Map(),
    due: [],
    byAnswer: new Map(),
    complained: new Map(),
    counts: { sent: 0, answered: 0, failed: 0 },
    burstLeft: NOTIFY_BURST,
    cancelBurst: undefined,
    cancelStart: undefined,
    hasEnded: false,
  };
  return {
    changed: (zone) => {
      const { targets, debounceMs } = options.settings();
      // The time runs from the first change: constant writes do not put it off for ever.
      if (state.hasEnded || targets.length === 0 || state.debouncing.has(zone)) return;
      const cancel = options.times.after(debounceMs, () => {
        state.debouncing.delete(zone);
        void announce(state, zone);
      });
      state.debouncing.set(zone, cancel);
    },
    announceAll: async (zones) => {
      if (options.settings().targets.length === 0) return;
      await publishedInTime(options);
      announceNext(state, zones);
    },
    heard: (bytes, address, port) => hear(state, bytes, address, port),
    stats: () => ({ ...state.counts, pending: state.pending.size }),
    [Symbol.dispose]: () => {
      state.hasEnded = true;
      for (const cancel of state.debouncing.values()) cancel();
      for (const { cancelTimer } of state.pending.values()) cancelTimer();
      state.cancelBurst?.();
      state.cancelStart?.();
    },
  };
}

async function announce(state: State, zone: string): Promise<void> {
  const { options } = state;
  await publishedInTime(options);
  if (state.hasEnded || options.soaOf(zone) === undefined) return;
  const { targets } = options.settings();
  if (targets.length > 0) options.onAnnounced(zone);
  for (const target of targets) tell(state, zone, target, NOTIFY_ATTEMPTS_MAX);
}

function tell(state: State, zone: string, target: NotifyTarget, attemptsMax: number): void {
  const key = `${zone} ${nameOf(target)}`;
  const former = state.pending.get(key);
  if (former === undefined && state.pending.size >= NOTIFY_PENDING_MAX) {
    state.counts.failed += 1;
    complain(state, target, "too many zones wait to be announced");
    return;
  }
  if (former !== undefined) settle(state, former);
  const pending: Pending = { zone, target, attemptsMax, attempts: 0, awaited: undefined, cancelTimer: () => {} };
  state.pending.set(key, pending);
  enqueue(state, pending);
}

/**
 * Announces some zones for the start, and goes on with the next ones later. A zone that has changed since is told anyway. It
 * need not be made ready for a transfer: most secondaries will find that they have it.
 */
function announceNext(state: State, zones: Iterator<string>): void {
  const { options } = state;
  // Zones that nobody is told of count too: looking at each takes time.
  let steps = 0;
  while (!state.hasEnded && steps < NOTIFY_START_AT_ONCE && state.pending.size < NOTIFY_START_PENDING_MAX) {
    const { targets } = options.settings();
    const next = zones.next();
    if (next.done === true || targets.length === 0) return;
    const zone = next.value;
    steps += targets.length;
    if (state.debouncing.has(zone) || options.soaOf(zone) === undefined) continue;
    for (const target of targets) {
      if (!state.pending.has(`${zone} ${nameOf(target)}`)) tell(state, zone, target, NOTIFY_START_ATTEMPTS_MAX);
    }
  }
  if (state.hasEnded) return;
  state.cancelStart = options.times.after(NOTIFY_START_PAUSE_MS, () => announceNext(state, zones));
}

/** Publishing is soon done; where it is not, a secondary that comes too early comes again. */
async function publishedInTime({ published, times }: DnsNotifyOptions): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = times.after(NOTIFY_PUBLISHED_MS, resolve);
  await Promise.race([published(), late]);
  cancel();
}

function enqueue(state: State, pending: Pending): void {
  state.due.push(pending);
  pump(state);
}

/** Sends what the present burst has room for; what is left goes with the next one. */
function pump(state: State): void {
  for (const pending of state.due.splice(0, state.burstLeft)) {
    state.burstLeft -= 1;
    void attempt(state, pending);
  }
  if (state.burstLeft === NOTIFY_BURST) return;
  state.cancelBurst ??= state.options.times.after(NOTIFY_BURST_PAUSE_MS, () => {
    state.cancelBurst = undefined;
    state.burstLeft = NOTIFY_BURST;
    pump(state);
  });
}

/** Never rejects. */
async function attempt(state: State, pending: Pending): Promise<void> {
  const { options } = state;
  const { target } = pending;
  const addresses = await options.resolveHost(target.host).catch((error: unknown) => errorText(error));
  if (state.hasEnded || !isPending(state, pending)) return;
  const settings = options.settings();
  const soa = options.soaOf(pending.zone);
  // It was taken out of the settings, or the zone is no more.
  const isWanted = settings.targets.some((other) => nameOf(other) === nameOf(target));
  if (soa === undefined || !isWanted) return settle(state, pending);
  pending.attempts += 1;
  if (pending.attempts > pending.attemptsMax) {
    state.counts.failed += 1;
    return settle(state, pending);
  }
  const fault = typeof addresses === "string" ? addresses : send(state, pending, soa, addresses, settings.key);
  if (fault !== undefined) complain(state, target, fault);
  else if (pending.attempts === Math.min(NOTIFY_SILENT_ATTEMPTS, pending.attemptsMax))
    complain(state, target, "no answer");
  const pauseMs = NOTIFY_PAUSES_MS[Math.min(pending.attempts, NOTIFY_PAUSES_MS.length) - 1] ?? 0;
  pending.cancelTimer = options.times.after(pauseMs, () => enqueue(state, pending));
}

/** Why nothing could be sent. */
function send(
  state: State,
  pending: Pending,
  soa: NotifySoa,
  addresses: readonly string[],
  key: DnsNotifySettings["key"],
): string | undefined {
  const { options } = state;
  // Each attempt goes to the next address: a host may have one that does not lead to it from here.
  const address = addresses[(pending.attempts - 1) % addresses.length];
  if (address === undefined) return "the host has no address";
  if (key === "missing") return "the TSIG key for NOTIFY is not there";
  const tsigKey = key === "none" ? undefined : key;
  const id = options.randomId();
  const { bytes, mac } = notifyMessage(soa, id, tsigKey, Math.floor(options.times.wallMs() / 1000));
  forgetAnswer(state, pending);
  pending.awaited = { id, address, soa, signed: tsigKey === undefined ? undefined : { key: tsigKey, mac } };
  state.byAnswer.set(answerKey(id, address, pending.target.port), pending);
  state.counts.sent += 1;
  options.send(bytes, address, pending.target.port);
  return undefined;
}

function hear(state: State, bytes: Uint8Array, address: string, port: number): void {
  if (state.hasEnded || bytes.length < 2) return;
  const pending = state.byAnswer.get(answerKey((bytes[0]! << 8) | bytes[1]!, address, port));
  if (pending?.awaited === undefined) return;
  const { soa, signed } = pending.awaited;
  const nowSeconds = Math.floor(state.options.times.wallMs() / 1000);
  const answer = readNotifyAnswer(bytes, soa.zone, signed, nowSeconds);
  if (answer.kind === "ignored") {
    complain(state, pending.target, answer.reason);
    return;
  }
  if (answer.kind === "taken") state.counts.answered += 1;
  else {
    state.counts.failed += 1;
    complain(state, pending.target, `it says RCODE ${answer.rcode}`);
  }
  settle(state, pending);
}

function isPending(state: State, pending: Pending): boolean {
  return state.pending.get(`${pending.zone} ${nameOf(pending.target)}`) === pending;
}

function settle(state: State, pending: Pending): void {
  pending.cancelTimer();
  forgetAnswer(state, pending);
  if (isPending(state, pending)) state.pending.delete(`${pending.zone} ${nameOf(pending.target)}`);
}

function forgetAnswer({ byAnswer }: State, pending: Pending): void {
  if (pending.awaited === undefined) return;
  const key = answerKey(pending.awaited.id, pending.awaited.address, pending.target.port);
  if (byAnswer.get(key) === pending) byAnswer.delete(key);
}

function answerKey(id: number, address: string, port: number): string {
  return `${id} ${address} ${port}`;
}

function nameOf({ host, port }: NotifyTarget): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

const COMPLAINTS_MAX = 1_000;

/** One line a target, and then none for a while. */
function complain({ options, complained }: State, target: NotifyTarget, reason: string): void {
  const name = nameOf(target);
  const nowMs = options.times.now();
  if (nowMs - (complained.get(name) ?? Number.NEGATIVE_INFINITY) < NOTIFY_COMPLAINT_PAUSE_MS) return;
  // Those of targets that are in the settings no more.
  if (complained.size > COMPLAINTS_MAX) complained.clear();
  complained.set(name, nowMs);
  options.log("warn", `a secondary does not take NOTIFY: ${reason}`, { target: name });
}

/** Standalone checks: each is a probe of its own that gates nothing. They are those of the store at every moment. */
import { isDeepStrictEqual } from "node:util";
import { checkTarget } from "../model/endpoint.ts";
import type { HealthCheckBody } from "../model/objects.ts";
import { type ChangeBatch, LIST_PAGE_MAX, type Store } from "../store/store.ts";
import type { HealthEvent } from "./book.ts";
import type { KnownState } from "./messages.ts";
import { asksTheSame, type ProbeSpec, type ProbeState, type Transition } from "./probe.ts";

export type WatchedCheck = {
  readonly body: HealthCheckBody;
  /** Undefined: this node does not probe it. */
  readonly spec: ProbeSpec | undefined;
  /** As far as this thread has heard. */
  state: ProbeState;
  /** What whoever hears of events takes it to be. */
  told: Told;
};

/** A check that is not judged yet counts as healthy. */
type Told = Exclude<ProbeState, "unknown">;

export type ChecksOptions = {
  readonly store: Pick<Store, "list" | "onChange">;
  /** Whether this node runs scripts. */
  readonly areScriptsEnabled: boolean;
  readonly start: (spec: ProbeSpec) => void;
  readonly stop: (key: string) => void;
  readonly onEvent: (event: HealthEvent) => void;
};

export type Checks = Disposable & {
  readonly byId: ReadonlyMap<string, WatchedCheck>;
  /** Of checks; others are passed over. */
  readonly hear: (transitions: readonly Transition[]) => void;
  readonly recall: (states: readonly KnownState[]) => void;
};

type State = { readonly options: ChecksOptions; readonly byId: Map<string, WatchedCheck> };

/** Starts the probes of all checks that there are, and follows the store from then on. */
export function openChecks(options: ChecksOptions): Checks {
  const state: State = { options, byId: new Map() };
  let page = options.store.list("healthcheck", { limit: LIST_PAGE_MAX });
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    for (const { body } of page) watch(state, body);
    page = options.store.list("healthcheck", { limit: LIST_PAGE_MAX, after: last.key });
  }
  const end = options.store.onChange((batch) => follow(state, batch));
  return {
    byId: state.byId,
    hear: (transitions) => {
      for (const { key, from, to } of transitions) turn(state, key, from, to);
    },
    recall: (states) => {
      for (const { key, state: found } of states) {
        const check = state.byId.get(key);
        if (check === undefined || check.state === found) continue;
        // What it was before the start is no event; what a health thread did not get to tell before it died is one.
        if (check.state === "unknown") become(check, found);
        else turn(state, key, check.state, found);
      }
    },
    [Symbol.dispose]: end,
  };
}

function follow(state: State, { changes }: ChangeBatch): void {
  const gone = new Set<string>();
  for (const { kind, before } of changes) {
    if (kind !== "healthcheck") continue;
    // A rename is a deletion and a creation with one id, in any order.
    if (isCheck(before?.body)) gone.add(before.body.id);
  }
  for (const { kind, after } of changes) {
    if (kind !== "healthcheck" || !isCheck(after?.body)) continue;
    gone.delete(after.body.id);
    watch(state, after.body);
  }
  for (const id of gone) {
    state.byId.delete(id);
    state.options.stop(id);
  }
}

/** Of the bodies of all kinds only a check has these. */
function isCheck(body: object | undefined): body is HealthCheckBody {
  return body !== undefined && "failure_threshold" in body;
}

function watch({ options, byId }: State, body: HealthCheckBody): void {
  const former = byId.get(body.id);
  const spec = body.protocol === "script" && !options.areScriptsEnabled ? undefined : specOf(body);
  const isSameQuestion = former?.spec !== undefined && spec !== undefined && asksTheSame(former.spec, spec);
  const state = isSameQuestion ? former.state : "unknown";
  byId.set(body.id, { body, spec, state, told: former?.told ?? "healthy" });
  if (isDeepStrictEqual(former?.spec, spec)) return;
  if (spec === undefined) options.stop(body.id);
  else options.start(spec);
}

/** Undefined where the target is none, which no stored check has. */
function specOf(body: HealthCheckBody): ProbeSpec | undefined {
  const { id, protocol, http_config, script_config } = body;
  const base = {
    key: id,
    slot: 0,
    protocol,
    intervalMs: body.interval_seconds * 1000,
    timeoutMs: (script_config?.timeout_seconds ?? body.timeout_seconds) * 1000,
    failureThreshold: body.failure_threshold,
  };
  if (protocol === "script") {
    return { ...base, host: "", port: 0, ...(script_config === undefined ? {} : { script: script_config }) };
  }
  const target = body.target === undefined ? undefined : checkTarget(body.target);
  if (target === undefined) return undefined;
  const { host, port } = target;
  if (protocol === "tcp") return { ...base, host, port };
  const http = http_config === undefined ? {} : { http: http_config };
  return { ...base, host, port, path: http_config?.path ?? "/", ...http };
}

/** Silently: nobody is told. */
function become(check: WatchedCheck, state: ProbeState): void {
  check.state = state;
  check.told = state === "unhealthy" ? "unhealthy" : "healthy";
}

function turn({ options, byId }: State, id: string, from: ProbeState, to: ProbeState): void {
  const check = byId.get(id);
  if (check === undefined) return;
  // A state from before the start that nobody told of is no event.
  if (check.state !== from) become(check, from);
  const { told } = check;
  check.state = to;
  if (to === "unknown" || to === told) return;
  check.told = to;
  const { name, protocol, target } = check.body;
  const previous = told === "healthy" ? from : told;
  const data = { state: to, previous, name, protocol, ...(target === undefined ? {} : { target }) };
  options.onEvent({ type: "health.check_transition", subject: id, data });
}

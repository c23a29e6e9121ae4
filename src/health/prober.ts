/**
 * Runs one probe: policy, addresses, token, then one exchange, or several where the host has several addresses. The
 * scheduler says when, and what the outcome means.
 */
import type { LookupFunction } from "node:net";
import { codedError, errorText } from "../base/errors.ts";
import { ipFromText } from "../base/ip.ts";
import { createManagedIdentity } from "../base/managed-identity.ts";
import { beginExchange, type Exchange, type ExchangeEnd } from "./exchange.ts";
import { plainText } from "./network-error.ts";
import { createOauth2Client } from "./oauth2.ts";
import type { ProbeError, ProbeOutcome, ProbePolicy, ProbeSpec } from "./probe.ts";
import { type HttpPlan, type ProbePlan, planOf, policyFault } from "./probe-plan.ts";
import { createTlsContexts, platformAuthorities } from "./tls-trust.ts";

export type ProberOptions = {
  /** Addresses of an absolute host name, the ones to try first in front. Rejects, or gives none, where there are none. */
  readonly resolveHost: (host: string) => Promise<readonly string[]>;
  /** Origin of the instance metadata service. */
  readonly metadataUrl: string;
  readonly policy: () => ProbePolicy;
  /** Left out: there is no runner, and every script fails. */
  readonly runScript?: (spec: ProbeSpec) => Promise<ProbeOutcome>;
  /** Milliseconds since 1970; the system's where left out. */
  readonly now?: () => number;
  /** Milliseconds that never go back; the process's where left out. */
  readonly monotonicMs?: () => number;
  /** PEM of whom TLS trusts in general; the platform's where left out. */
  readonly authorities?: () => readonly string[];
};

export type Prober = {
  /**
   * Never rejects, and ends within the spec's timeout, give or take the timer; a script's within that and
   * SCRIPT_GRACE_MS. One and the same spec object should come for each run: what it means is worked out once for each.
   */
  readonly run: (spec: ProbeSpec) => Promise<ProbeOutcome>;
  /** Ends what runs: each ends as "unreachable", which then is no verdict. Tokens are forgotten. */
  readonly close: () => void;
};

export const SCRIPT_GRACE_MS = 1_000;
/** Of a host's addresses. */
const ADDRESSES_TRIED_MAX = 4;

type Fault = { readonly error: ProbeError; readonly detail: string };
const CLOSED: Fault = { error: "unreachable", detail: "the node ends" };

/** Takes a function that ends what goes on; gives one that takes it back. */
type OnClose = (end: () => void) => () => void;

export function createProber(options: ProberOptions): Prober {
  const { resolveHost, now = Date.now, monotonicMs = () => performance.now() } = options;
  const plans = new WeakMap<ProbeSpec, ProbePlan>();
  const ends = new Set<() => void>();
  let isClosed = false;
  const onClose: OnClose = (end) => {
    // A run that was between two of its steps.
    if (isClosed) queueMicrotask(end);
    ends.add(end);
    return () => ends.delete(end);
  };
  const oauth2 = createOauth2Client(now, lookupWith(resolveHost));
  const identity = createManagedIdentity({ metadataUrl: options.metadataUrl, now });
  const parts: Parts = {
    resolveHost,
    policy: options.policy,
    runScript: options.runScript,
    monotonicMs,
    onClose,
    contexts: createTlsContexts(options.authorities ?? platformAuthorities),
    tokens: {
      tokenFor: (config) => {
        if (config.oauth2 !== undefined) return oauth2.tokenFor(config.oauth2);
        const { resource, client_id } = config.managed_identity ?? {};
        return resource === undefined ? undefined : identity.tokenFor(resource, client_id);
      },
      drop: (config, leastAgeMs) => {
        if (config.oauth2 !== undefined) oauth2.drop(config.oauth2, leastAgeMs);
        const { resource, client_id } = config.managed_identity ?? {};
        if (resource !== undefined) identity.drop(resource, client_id, leastAgeMs);
      },
    },
  };
  return {
    run: async (spec) => {
      if (isClosed) return { ...CLOSED, latencyUs: 0 };
      const startMs = monotonicMs();
      try {
        if (spec.protocol === "script") return await runScript(parts, spec);
        const plan = plans.get(spec) ?? planOf(spec);
        plans.set(spec, plan);
        return await probe(parts, spec, plan);
      } catch (thrown) {
        // Nothing above should throw; a probe that cannot be made at all is one that failed.
        const detail = plainText(`the probe cannot be made: ${errorText(thrown)}`);
        return { error: "unreachable", detail, latencyUs: microseconds(monotonicMs() - startMs) };
      }
    },
    close: () => {
      isClosed = true;
      oauth2.close();
      identity.close();
      for (const end of ends) end();
      ends.clear();
    },
  };
}

type Parts = Pick<ProberOptions, "resolveHost" | "policy"> & {
  readonly runScript: ProberOptions["runScript"];
  readonly monotonicMs: () => number;
  readonly onClose: OnClose;
  readonly contexts: ReturnType<typeof createTlsContexts>;
  readonly tokens: {
    /** Undefined: the probe has no token. */
    readonly tokenFor: (config: HttpPlan["config"]) => Promise<string> | undefined;
    readonly drop: (config: HttpPlan["config"], leastAgeMs: number) => void;
  };
};

async function probe(parts: Parts, spec: ProbeSpec, plan: ProbePlan): Promise<ProbeOutcome> {
  const { monotonicMs } = parts;
  const endMs = monotonicMs() + spec.timeoutMs;
  const { http } = plan;
  const refusal = http === undefined ? undefined : policyFault(spec, http, parts.policy());
  if (refusal !== undefined) return { error: "policy", detail: refusal, latencyUs: 0 };

  const resolved = plan.address === undefined ? await resolve(parts, spec.host, endMs) : [plan.address];
  if (!Array.isArray(resolved)) return { ...resolved, latencyUs: 0 };
  const prepared = http === undefined ? {} : await prepareHttp(parts, http, endMs);
  if ("error" in prepared) return { ...prepared, latencyUs: 0 };

  let outcome: ProbeOutcome = { error: "resolve", detail: "the host has no address", latencyUs: 0 };
  for (const [index, address] of resolved.entries()) {
    const startMs = monotonicMs();
    const leftMs = Math.ceil(endMs - startMs);
    if (leftMs <= 0) break;
    // Those that are left are to have their turn.
    const connectTimeoutMs = Math.ceil(leftMs / (resolved.length - index));
    const { port } = spec;
    const end = await exchangeWith(parts, { ...prepared, address, port, connectTimeoutMs, timeoutMs: leftMs });
    outcome = outcomeOf(end, http, microseconds(monotonicMs() - startMs));
    if (end.kind === "status" && outcome.error !== undefined && http !== undefined) {
      // The token may have lost its rights; another is had, but not with each run.
      if (end.status === 401 || end.status === 403) parts.tokens.drop(http.config, spec.intervalMs);
    }
    if (end.kind !== "failed" || end.wasConnected) return outcome;
  }
  return outcome;
}

async function resolve(parts: Parts, host: string, endMs: number): Promise<readonly string[] | Fault> {
  const fault = (detail: string): Fault => ({ error: "resolve", detail });
  const outcome = await within(parts, parts.resolveHost(host), endMs);
  if (outcome.kind === "late") return fault("the host name was not resolved in time");
  if (outcome.kind === "closed") return CLOSED;
  if (outcome.kind === "failed") return fault("the host name cannot be resolved");
  const addresses = outcome.value.filter((address) => ipFromText(address) !== undefined);
  return addresses.length === 0 ? fault("the host has no address") : addresses.slice(0, ADDRESSES_TRIED_MAX);
}

type Prepared = Pick<Exchange, "tls" | "http">;

async function prepareHttp(parts: Parts, plan: HttpPlan, endMs: number): Promise<Prepared | Fault> {
  const { config, isTls, isWritable, name, isExpected } = plan;
  if (!isWritable) return { error: "protocol", detail: "the request has characters that no header takes" };
  const fault = (detail: string): Fault => ({ error: "credentials", detail: plainText(detail) });
  let tls: Prepared["tls"];
  try {
    if (isTls) tls = { context: parts.contexts.contextFor(config), name };
  } catch (thrown) {
    return fault(`the client certificate cannot be used: ${errorText(thrown)}`);
  }
  if (config.oauth2 !== undefined) parts.contexts.trustPlatform();
  const waiting = parts.tokens.tokenFor(config);
  let token: string | undefined;
  if (waiting !== undefined) {
    const outcome = await within(parts, waiting, endMs);
    if (outcome.kind === "late") return fault("no token in time");
    if (outcome.kind === "closed") return CLOSED;
    if (outcome.kind === "failed") return fault(`no token: ${errorText(outcome.thrown)}`);
    token = outcome.value;
  }
  const request = plan.request(token);
  return { http: { request, isExpected }, ...(tls === undefined ? {} : { tls }) };
}

function exchangeWith({ onClose }: Parts, exchange: Exchange): Promise<ExchangeEnd> {
  return new Promise((resolve) => {
    const stop = beginExchange(exchange, (end) => {
      forget();
      resolve(end);
    });
    const forget = onClose(() => {
      stop();
      resolve({ kind: "failed", ...CLOSED, wasConnected: true });
    });
  });
}

function outcomeOf(end: ExchangeEnd, http: HttpPlan | undefined, latencyUs: number): ProbeOutcome {
  if (end.kind === "failed") return { error: end.error, detail: end.detail, latencyUs };
  if (end.kind === "connected" || http === undefined || http.isExpected(end.status)) return { latencyUs };
  const isRedirect = end.status >= 300 && end.status <= 399;
  const detail = `answered ${end.status}${isRedirect ? "; redirects are not followed" : ""}`;
  return { error: "status", detail, latencyUs };
}

type Waited<Value> =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "failed"; readonly thrown: unknown }
  | { readonly kind: "late" }
  | { readonly kind: "closed" };

/** What the promise gives, unless `endMs` comes first; it goes on all the same, as others may wait for it too. */
function within<Value>(parts: Parts, promise: Promise<Value>, endMs: number): Promise<Waited<Value>> {
  return new Promise((resolve) => {
    const settle = (outcome: Waited<Value>): void => {
      clearTimeout(timer);
      forget();
      resolve(outcome);
    };
    const forget = parts.onClose(() => settle({ kind: "closed" }));
    const timer = setTimeout(() => settle({ kind: "late" }), Math.max(0, Math.ceil(endMs - parts.monotonicMs())));
    promise.then(
      (value) => settle({ kind: "value", value }),
      (thrown: unknown) => settle({ kind: "failed", thrown }),
    );
  });
}

/** The runner ends the script in time; this is for a runner that does not answer. */
async function runScript(parts: Parts, spec: ProbeSpec): Promise<ProbeOutcome> {
  const { monotonicMs } = parts;
  if (parts.runScript === undefined) return { error: "runner", detail: "there is no runner of scripts", latencyUs: 0 };
  const startMs = monotonicMs();
  const outcome = await within(parts, parts.runScript(spec), startMs + spec.timeoutMs + SCRIPT_GRACE_MS);
  if (outcome.kind === "value") return outcome.value;
  const latencyUs = microseconds(monotonicMs() - startMs);
  if (outcome.kind === "closed") return { ...CLOSED, latencyUs };
  return {
    error: "runner",
    detail: `the runner ${outcome.kind === "late" ? "does not answer" : "cannot be reached"}`,
    latencyUs,
  };
}

function microseconds(ms: number): number {
  return Math.round(ms * 1_000);
}

/** For connections that are not probes. "localhost" is what this machine calls itself (RFC 6761 section 6.3). */
function lookupWith(resolveHost: ProberOptions["resolveHost"]): LookupFunction {
  return (host, { all }, callback) => {
    const asked =
      host === "localhost"
        ? Promise.resolve(["127.0.0.1", "::1"])
        : resolveHost(host.endsWith(".") ? host : `${host}.`);
    asked.then(
      (texts) => {
        const addresses = texts.map((address) => ({ address, family: ipFromText(address)?.length === 4 ? 4 : 6 }));
        const [first] = addresses;
        if (first === undefined) callback(codedError("ENOTFOUND", `${host} has no address`), "", 4);
        else if (all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      () => callback(codedError("ENOTFOUND", `${host} cannot be resolved`), "", 4),
    );
  };
}

/** A probe: what is asked, how an answer is judged, and what came of it. */
import { isDeepStrictEqual } from "node:util";
import type { HttpConfig, ScriptConfig } from "../model/objects.ts";

/** Everything that a probe needs. It holds secrets: it stays in memory and in no log. */
export type ProbeSpec = {
  /** What the probe is called between the threads: the HealthKey of one that gates values, the id of a standalone check. */
  readonly key: string;
  /** Health slot that its verdicts are written to; 0: they gate nothing. */
  readonly slot: number;
  readonly protocol: "tcp" | "http" | "https" | "script";
  /** An address, or an absolute host name with its trailing dot; empty for a script. */
  readonly host: string;
  /** 0 for a script. */
  readonly port: number;
  readonly intervalMs: number;
  /** At most `intervalMs`; a script's own time-out where it has one. */
  readonly timeoutMs: number;
  /** Failures in a row that make it unhealthy. */
  readonly failureThreshold: number;
  /** Of http and https: from a slash on. */
  readonly path?: string;
  readonly http?: HttpConfig;
  readonly script?: ScriptConfig;
};

/** Whether two probes ask one thing, however often and however it is judged. What asks another thing begins unjudged. */
export function asksTheSame(one: ProbeSpec, other: ProbeSpec): boolean {
  return isDeepStrictEqual(questionOf(one), questionOf(other));
}

function questionOf({ protocol, host, port, path, http, script }: ProbeSpec): unknown[] {
  return [protocol, host, port, path, http, script];
}

/** Successes in a row that make it healthy again. */
export const RECOVERY_THRESHOLD = 2;

/** Why a probe failed. Users read these words: docs/health.md explains each. */
export const PROBE_ERRORS = [
  /** The host name has no address. */
  "resolve",
  "refused",
  /** No route to the host, or the network said so. */
  "unreachable",
  "connect_timeout",
  /** The connection ended before the answer. */
  "reset",
  /** The certificate is of another name. */
  "tls_name",
  "tls_expired",
  /** Nobody that we trust signed it. */
  "tls_untrusted",
  /** Any other failure of TLS. */
  "tls",
  /** An answer with a status that was not expected. */
  "status",
  /** Connected, and no whole answer in time. */
  "read_timeout",
  /** What came is no HTTP. */
  "protocol",
  /** No token could be had for it, or its client certificate cannot be used. */
  "credentials",
  /** The policy forbids it: credentials without TLS, or a managed identity's token for a host that is not listed. */
  "policy",
  /** The script ended with another status than 0, was too slow or wrote too much. */
  "script",
  /** The runner of scripts cannot be reached, or refuses. */
  "runner",
] as const;
export type ProbeError = (typeof PROBE_ERRORS)[number];

export type ProbeOutcome = {
  /** From the first byte sent to the verdict, in whole microseconds. */
  readonly latencyUs: number;
  /** Absent: it succeeded. */
  readonly error?: ProbeError;
  /** For a person, without secrets, at most 200 characters. */
  readonly detail?: string;
};

/** What an administrator allows probes that carry credentials (the settings "health-probe-policy"). */
export type ProbePolicy = {
  readonly allowInsecureAuthenticatedProbes: boolean;
  readonly managedIdentityHosts: readonly string[];
};

export type ProbeState = "unknown" | "healthy" | "unhealthy";

/** What a node knows of one probe. Times are milliseconds since 1970. */
export type ProbeStatus = {
  readonly key: string;
  readonly state: ProbeState;
  /** When it came into this state; absent while it is unknown. */
  readonly sinceMs?: number;
  /** When it was last probed, by this process or the one before. */
  readonly checkedMs?: number;
  readonly nextMs: number;
  /** Its last probe is three intervals late. */
  readonly isStale: boolean;
  /** In a row, up to now. */
  readonly failures: number;
  readonly successes: number;
  /** Smoothed, of successes; 0 while there are none. */
  readonly latencyUs: number;
  /** The last 20, oldest first. */
  readonly history: readonly (ProbeOutcome & { readonly atMs: number })[];
};
export const HISTORY_MAX = 20;

/** A probe that changed its state; the first verdict of an unknown one is a change too. */
export type Transition = {
  readonly key: string;
  readonly from: ProbeState;
  readonly to: ProbeState;
  readonly atMs: number;
};

export const LATENESS_QUANTILES = ["0.5", "0.99", "1"] as const;
export type LatenessQuantile = (typeof LATENESS_QUANTILES)[number];

/** Figures of all probes together. */
export type ProbeFigures = {
  readonly probes: { readonly [S in ProbeState]: number };
  readonly stale: number;
  readonly inFlight: number;
  readonly done: number;
  readonly failed: { readonly [E in ProbeError]?: number };
  /** How late probes began in the last minute, milliseconds, by quantile. */
  readonly latenessMs: { readonly [Q in LatenessQuantile]: number };
};

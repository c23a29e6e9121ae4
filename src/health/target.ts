/** From a value and its template to the probe that asks it, and to a text that tells this probe from all others. */
import { ipFromText } from "../base/ip.ts";
import type { HealthCheckTemplate, RecordType } from "../model/objects.ts";
import { canonicalText } from "../model/record-values.ts";
import type { ProbeSpec } from "./probe.ts";

/** Templates have it fixed. */
export const TEMPLATE_FAILURE_THRESHOLD = 3;

export type ProbeTarget = {
  /** All that the probe does, secrets included, in one spelling. */
  readonly text: string;
  readonly spec: Omit<ProbeSpec, "key" | "slot">;
};

/**
 * `template` is complete. Undefined where nothing can be asked: an SRV value that says that there is no service (RFC 2782),
 * or one without a port.
 */
export function probeTarget(
  type: RecordType,
  template: HealthCheckTemplate,
  value: string,
  valuePort: number | undefined,
): ProbeTarget | undefined {
  const { protocol, path, http_config, port: templatePort, interval_seconds = 0, timeout_seconds = 0 } = template;
  const host = hostOf(type, value);
  const port = templatePort ?? valuePort ?? 0;
  if (host === undefined || port === 0) return undefined;
  // The complete template has the path in one place.
  const { path: _, ...http } = http_config ?? {};
  const spec = {
    protocol,
    host,
    port,
    intervalMs: interval_seconds * 1000,
    timeoutMs: timeout_seconds * 1000,
    failureThreshold: TEMPLATE_FAILURE_THRESHOLD,
    ...(path === undefined ? {} : { path }),
    ...(Object.keys(http).length === 0 ? {} : { http }),
  };
  return { text: sortedJson(spec), spec };
}

/** An address in canonical spelling, or an absolute host name in lower case. */
function hostOf(type: RecordType, value: string): string | undefined {
  if (type === "A" || type === "AAAA") return canonicalText(type, value);
  const name = value.toLowerCase();
  if (name === "" || name === ".") return undefined;
  if (ipFromText(name) !== undefined) return name;
  return name.endsWith(".") ? name : `${name}.`;
}

/** JSON whose objects have their keys in order, so that two spellings of one thing are one text. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** Standalone health checks: they watch a target and report, and gate no record's answers. */
import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Static, Type } from "typebox";
import { CommentShape, orNull } from "./answer-fields.ts";
import { checkTarget } from "./endpoint.ts";
import { HttpConfigShape, httpFaults } from "./health-template.ts";
import * as limits from "./limits.ts";
import type { HealthCheckBody, ScriptConfig } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import { maskSecrets, restoreSecrets, unrestoredFaults } from "./secrets.ts";

const Seconds = Type.Integer({ minimum: 1, maximum: limits.PROBE_INTERVAL_SECONDS_MAX });
const Name = Type.String({
  minLength: 1,
  maxLength: limits.HEALTH_CHECK_NAME_CHARACTERS_MAX,
  description: "Printable, without blanks at its ends; unique.",
  examples: ["billing database"],
});
export const CheckProtocolShape = Type.Enum(["tcp", "http", "https", "script"]);
const Target = Type.String({
  minLength: 1,
  maxLength: limits.ENDPOINT_MAX,
  description: "`host:port`, an IPv6 address in brackets. A script may do without.",
  examples: ["192.0.2.10:443", "[2001:db8::1]:443", "app.example:8080"],
});
const Threshold = Type.Integer({ minimum: 1, maximum: limits.FAILURE_THRESHOLD_MAX });

export const ScriptConfigShape = Type.Object(
  {
    command: Type.String({
      minLength: 1,
      maxLength: limits.SCRIPT_COMMAND_CHARACTERS_MAX,
      description: "Absolute path of a program.",
      examples: ["/usr/local/lib/signpost/scripts/queue-depth"],
    }),
    args: Type.Optional(
      Type.Array(Type.String({ maxLength: limits.SCRIPT_ARG_CHARACTERS_MAX }), {
        maxItems: limits.SCRIPT_ARGS_MAX,
        description: "Read as *** in the audit log.",
      }),
    ),
    timeout_seconds: Type.Optional(Seconds),
  },
  { additionalProperties: false },
);

const SETTABLE = {
  target: Type.Optional(orNull(Target)),
  interval_seconds: Type.Optional(Seconds),
  timeout_seconds: Type.Optional(Seconds),
  failure_threshold: Type.Optional(Threshold),
  http_config: Type.Optional(orNull(HttpConfigShape)),
  script_config: Type.Optional(orNull(ScriptConfigShape)),
  comment: Type.Optional(orNull(CommentShape)),
};

export const HealthCheckCreate = Type.Object(
  { name: Name, protocol: CheckProtocolShape, ...SETTABLE },
  {
    additionalProperties: false,
    examples: [
      { name: "billing", protocol: "https", target: "app.example:443", http_config: { expected_status: [200] } },
    ],
  },
);
export type HealthCheckCreate = Static<typeof HealthCheckCreate>;

const READ_ONLY_TEXT = Type.Optional(Type.String({ maxLength: limits.NAME_TEXT_MAX, readOnly: true }));

export const HealthCheckUpdate = Type.Object(
  {
    name: Type.Optional(Name),
    protocol: Type.Optional(CheckProtocolShape),
    ...SETTABLE,
    id: READ_ONLY_TEXT,
    created_at: READ_ONLY_TEXT,
    updated_at: READ_ONLY_TEXT,
  },
  { additionalProperties: false, examples: [{ interval_seconds: 30 }] },
);
export type HealthCheckUpdate = Static<typeof HealthCheckUpdate>;

const Time = Type.String({ format: "date-time" });

export const HealthCheckView = Type.Object({
  id: Type.String({ maxLength: limits.ID_MAX, examples: ["chk_abcdefghij2345672345"] }),
  name: Name,
  protocol: CheckProtocolShape,
  target: Type.Optional(Target),
  interval_seconds: Seconds,
  timeout_seconds: Seconds,
  failure_threshold: Threshold,
  http_config: Type.Optional(HttpConfigShape),
  script_config: Type.Optional(ScriptConfigShape),
  comment: Type.Optional(CommentShape),
  created_at: Time,
  updated_at: Time,
});

export function healthCheckView(check: HealthCheckBody, times: ViewTimes): Record<string, unknown> {
  return { ...maskSecrets("healthcheck", check), created_at: times.createdAt, updated_at: times.updatedAt };
}

/** The one spelling of a name; undefined: it is none. */
export function healthCheckName(text: string): string | undefined {
  const name = text.normalize("NFC");
  // Neither blanks at the ends nor what cannot be seen anywhere; lone surrogates are of \p{C} too.
  const isName = /^[^\p{C}\p{Z}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\p{C}\p{Z}])?$/u.test(name);
  return isName && [...name].length <= limits.HEALTH_CHECK_NAME_CHARACTERS_MAX ? name : undefined;
}

/**
 * Whether a request sets the protocol script, takes it away, or changes what a script is: that is an administrator's.
 * What is sent back as GET gave it is no change. `current` is undefined for a create.
 */
export function editsScript(
  current: HealthCheckBody | undefined,
  given: Pick<HealthCheckUpdate, "protocol" | "script_config">,
): boolean {
  const protocol = given.protocol ?? current?.protocol;
  if (protocol !== current?.protocol && [protocol, current?.protocol].includes("script")) return true;
  if (given.script_config === undefined) return false;
  return !isDeepStrictEqual(given.script_config ?? undefined, current?.script_config);
}

/** The body of a new check. Throws `invalid_request` with every fault. */
export function healthCheckFromCreate(given: HealthCheckCreate, id: string): HealthCheckBody {
  const restored = restoreSecrets("healthcheck", given, undefined);
  refuseFaults(unrestoredFaults(restored));
  const interval = given.interval_seconds ?? limits.PROBE_INTERVAL_SECONDS_DEFAULT;
  const start: HealthCheckBody = {
    id,
    name: given.name,
    protocol: given.protocol,
    interval_seconds: interval,
    timeout_seconds: Math.min(limits.PROBE_TIMEOUT_SECONDS_DEFAULT, interval),
    failure_threshold: limits.FAILURE_THRESHOLD_DEFAULT,
  };
  return completeCheck(withFields(start, restored.body));
}

/** The body after an update. Throws `invalid_request` with every fault, of read-only fields too. */
export function healthCheckWithUpdate(
  current: HealthCheckBody,
  given: HealthCheckUpdate,
  times: ViewTimes,
): HealthCheckBody {
  refuseFaults(readOnlyFaults(healthCheckView(current, times), given, ["id", "created_at", "updated_at"]));
  // Secrets that are not given stay as those that are given as "***", and are bound to where they go like those.
  const asked = withFields(maskSecrets("healthcheck", current), given);
  const restored = restoreSecrets("healthcheck", asked, current);
  refuseFaults(unrestoredFaults(restored));
  return completeCheck(restored.body);
}

const REMOVABLE = ["target", "http_config", "script_config", "comment"] as const;

/** `current` with the fields given: each replaced whole, taken away where it is null. */
function withFields(current: HealthCheckBody, given: Omit<HealthCheckUpdate, "id">): HealthCheckBody {
  const removable: Record<string, unknown> = {};
  for (const field of REMOVABLE) if (given[field] !== undefined) removable[field] = given[field];
  const merged = {
    ...current,
    ...removable,
    name: given.name ?? current.name,
    protocol: given.protocol ?? current.protocol,
    interval_seconds: given.interval_seconds ?? current.interval_seconds,
    timeout_seconds: given.timeout_seconds ?? current.timeout_seconds,
    failure_threshold: given.failure_threshold ?? current.failure_threshold,
  };
  for (const field of REMOVABLE) if (given[field] === null) delete merged[field];
  return merged;
}

/** Everything in its one spelling. Throws `invalid_request` with every fault. */
function completeCheck(body: HealthCheckBody): HealthCheckBody {
  const { protocol, target, http_config } = body;
  const name = healthCheckName(body.name);
  const asked = target === undefined ? undefined : checkTarget(target);
  const faults: FieldFault[] = [];
  if (name === undefined) {
    faults.push({ pointer: "/name", detail: "must be printable, without blanks at its ends, and not too long" });
  }
  if (target !== undefined && asked === undefined) {
    const detail = "must be host:port, such as 192.0.2.1:443, [2001:db8::1]:443 or app.example:8080";
    faults.push({ pointer: "/target", detail });
  } else if (target === undefined && protocol !== "script") {
    faults.push({ pointer: "/target", detail: `is missing: ${protocol} asks a host:port` });
  }
  faults.push(...timeoutFaults(body.timeout_seconds, body.interval_seconds, "/timeout_seconds"));
  if (http_config !== undefined) {
    const isHttp = protocol === "http" || protocol === "https";
    if (!isHttp) faults.push({ pointer: "/http_config", detail: `${protocol} has no http_config` });
    else faults.push(...httpFaults(http_config, protocol === "https", "/http_config"));
  }
  faults.push(...scriptFaults(body));
  const complete = {
    ...body,
    name: name ?? body.name,
    ...(asked === undefined ? {} : { target: asked.text }),
  };
  if (Buffer.byteLength(JSON.stringify(complete)) > limits.HEALTH_CHECK_BYTES_MAX) {
    const pointer = http_config === undefined ? "/script_config" : "/http_config";
    faults.push({ pointer, detail: `the check is longer than ${limits.HEALTH_CHECK_BYTES_MAX} bytes in all` });
  }
  refuseFaults(faults);
  return complete;
}

function timeoutFaults(timeout: number | undefined, interval: number, pointer: string): FieldFault[] {
  if (timeout === undefined || timeout <= interval) return [];
  return [{ pointer, detail: `must not exceed interval_seconds, which is ${interval}` }];
}

function scriptFaults({ protocol, script_config, interval_seconds }: HealthCheckBody): FieldFault[] {
  const pointer = "/script_config";
  if (script_config === undefined) {
    return protocol === "script" ? [{ pointer, detail: "is missing: it says what the script is" }] : [];
  }
  if (protocol !== "script") return [{ pointer, detail: `${protocol} has no script_config` }];
  return [
    ...commandFaults(script_config, pointer),
    ...timeoutFaults(script_config.timeout_seconds, interval_seconds, `${pointer}/timeout_seconds`),
  ];
}

function commandFaults({ command, args = [] }: ScriptConfig, pointer: string): FieldFault[] {
  const faults: FieldFault[] = [];
  if (!/^\/[ -~]*[!-~]$/.test(command) || posix.normalize(command) !== command || command.endsWith("/")) {
    const detail = "must be the absolute path of a program, in printable ASCII, without . and .. within";
    faults.push({ pointer: `${pointer}/command`, detail });
  }
  for (const [index, argument] of args.entries()) {
    // A program takes its arguments as texts that end at the first such byte.
    if (argument.includes("\0")) faults.push({ pointer: `${pointer}/args/${index}`, detail: "must not hold NUL" });
  }
  return faults;
}

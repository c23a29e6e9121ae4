/**
 * Where the secrets of each kind of object lie. One table: sealing at rest, masking in views, exports, audit entries and
 * logs, and the meaning of "***" in what a client sends all go by it.
 */
import type { Kind } from "./objects.ts";
import type { FieldFault } from "./refusal.ts";
import {
  isOtherCheckTarget,
  isOtherCheckTokenUrl,
  isOtherCollector,
  isOtherProbeTarget,
  isOtherTokenUrl,
} from "./secret-destinations.ts";

/** What a secret reads as, and what a client sends back to keep the stored one. */
export const MASK = "***";

/** `path` leads from the body to a string; "*" is every member of an object. */
export type SecretPath = {
  readonly path: readonly string[];
  /** The object around the secret says nothing without it, and goes with it where the secret is unknown. */
  readonly takesParent?: true;
  /**
   * Whether the secret would go elsewhere under the body `given` than under the one `stored`: "***" does not stand for it
   * then. Who may write a body but not read its secrets could else have them sent to a server of their own.
   */
  readonly isMoved?: (stored: unknown, given: unknown) => boolean;
};

type IsMoved = (stored: unknown, given: unknown) => boolean;

function probeSecrets(httpConfig: readonly string[], isOtherTarget: IsMoved, isOtherUrl: IsMoved): SecretPath[] {
  return [
    { path: [...httpConfig, "headers", "*"], isMoved: isOtherTarget },
    {
      path: [...httpConfig, "oauth2", "client_secret"],
      takesParent: true,
      // The token that the secret buys goes to the target of the probe.
      isMoved: (stored, given) => isOtherTarget(stored, given) || isOtherUrl(stored, given),
    },
    { path: [...httpConfig, "mtls", "key_pem"], takesParent: true, isMoved: isOtherTarget },
  ];
}

const TEMPLATE_SECRETS = probeSecrets(["health_check_template", "http_config"], isOtherProbeTarget, isOtherTokenUrl);

export const SECRET_PATHS: { readonly [K in Kind]: readonly SecretPath[] } = {
  zone: [],
  record: TEMPLATE_SECRETS,
  override: TEMPLATE_SECRETS,
  user: [{ path: ["password_hash"] }],
  session: [],
  "service-account": [{ path: ["secret_hash"] }],
  "tsig-key": [{ path: ["secret"] }],
  "subnet-mapping": [],
  // Of every document of settings: single sign-on has a client secret, metrics export has headers.
  config: [{ path: ["settings", "client_secret"] }, { path: ["settings", "headers", "*"], isMoved: isOtherCollector }],
  healthcheck: probeSecrets(["http_config"], isOtherCheckTarget, isOtherCheckTokenUrl),
  forwarder: [],
  blocklist: [],
  "blocklist-part": [],
  "stub-zone": [],
  node: [],
};

/** Names of members that are masked in anything that is written down without a kind. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([
  "password",
  "password_hash",
  "secret",
  "secret_hash",
  "client_secret",
  "key_pem",
  "token",
  "access_token",
  "refresh_token",
  "encrypt_key",
  "webhook_secret",
  "passphrase",
]);

/** Thrown away by `change`: the secret, or with `takesParent` the object around it, is left out of the copy. */
export const DROPPED: unique symbol = Symbol("dropped");

type Change = (secret: unknown, pointer: string, path: SecretPath) => unknown;

/**
 * A copy of `body` with each secret replaced by what `change` makes of it; what has no secrets is shared with the
 * original. `pointer` is an RFC 6901 pointer to the secret.
 */
export function mapSecrets<Body>(kind: Kind, body: Body, change: Change): Body;
export function mapSecrets(kind: Kind, body: unknown, change: Change): unknown {
  let copy = body;
  for (const each of SECRET_PATHS[kind]) {
    copy = mapAt(copy, each.path, 0, "", (secret, pointer) => change(secret, pointer, each), each.takesParent);
  }
  return copy;
}

function mapAt(
  value: unknown,
  path: readonly string[],
  depth: number,
  pointer: string,
  change: (secret: unknown, pointer: string) => unknown,
  takesParent: boolean | undefined,
): unknown {
  const name = path[depth];
  if (name === undefined) return change(value, pointer);
  if (!isObject(value)) return value;
  const names = name === "*" ? Object.keys(value) : Object.hasOwn(value, name) ? [name] : [];
  if (names.length === 0) return value;
  const changed = new Map<string, unknown>();
  for (const each of names) {
    const after = mapAt(value[each], path, depth + 1, `${pointer}/${escapePointer(each)}`, change, takesParent);
    if (after === DROPPED && takesParent === true && depth === path.length - 1) return DROPPED;
    changed.set(each, after);
  }
  // Entries and not assignment: a member may be called "__proto__".
  return Object.fromEntries(
    Object.entries(value).flatMap(([each, before]) => {
      const after = changed.has(each) ? changed.get(each) : before;
      return after === DROPPED ? [] : [[each, after]];
    }),
  );
}

/** A copy in which every secret reads "***". */
export function maskSecrets<Body>(kind: Kind, body: Body): Body {
  return mapSecrets(kind, body, () => MASK);
}

/** A copy as the audit log may have it: what a script is called with may be as secret as what opens a door. */
export function maskForAudit(kind: Kind, body: unknown): unknown {
  const masked = maskSecrets(kind, body);
  if (kind !== "healthcheck" || !isObject(masked) || !isObject(masked.script_config)) return masked;
  const { args, ...script } = masked.script_config;
  if (args === undefined) return masked;
  return { ...masked, script_config: { ...script, args: Array.isArray(args) ? args.map(() => MASK) : MASK } };
}

export type RestoredSecrets<Body> = {
  readonly body: Body;
  /** Pointers to the "***" that stand for nothing that is stored. What they stood for is left out of `body`. */
  readonly missing: readonly string[];
  /** Pointers to the "***" of secrets that are stored and would go elsewhere than before; left out likewise. */
  readonly moved: readonly string[];
};

/** Puts the stored secrets in the place of each "***" of `given`. `stored` is undefined where there is no such object. */
export function restoreSecrets<Body>(kind: Kind, given: Body, stored: unknown): RestoredSecrets<Body> {
  const missing: string[] = [];
  const moved: string[] = [];
  const known = new Map<string, unknown>();
  const folded = new Map<string, unknown>();
  if (stored !== undefined) {
    mapSecrets(kind, stored, (secret, pointer) => {
      known.set(pointer, secret);
      folded.set(foldPointer(pointer), secret);
      return secret;
    });
  }
  const body = mapSecrets(kind, given, (secret, pointer, { isMoved }) => {
    if (secret !== MASK) return secret;
    const kept = known.get(pointer) ?? folded.get(foldPointer(pointer));
    if (kept !== undefined && isMoved?.(stored, given) !== true) return kept;
    (kept === undefined ? missing : moved).push(pointer);
    return DROPPED;
  });
  return { body, missing, moved };
}

/** What is wrong with a body that must not do without the secrets that its "***" did not bring back. */
export function unrestoredFaults({ missing, moved }: RestoredSecrets<unknown>): FieldFault[] {
  return [
    ...missing.map((pointer) => ({ pointer, detail: "*** stands for a stored secret, and none is stored" })),
    ...moved.map((pointer) => ({ pointer, detail: "must be given anew, and not as ***: it would be sent elsewhere" })),
  ];
}

/** Names of HTTP headers are the only members that a client may spell in another case. */
function foldPointer(pointer: string): string {
  return pointer.toLowerCase();
}

/** A copy of anything with every member masked whose name is that of a secret: for what is written down without a kind. */
export function maskByName(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskByName);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      SECRET_MEMBERS.has(name) && each !== null && each !== undefined ? MASK : maskByName(each),
    ]),
  );
}

/** The kind whose objects a resource of the API has: "service_accounts" and "service-account" are the same. */
export function kindOfResource(resource: string): Kind | undefined {
  const name = resource.replaceAll("_", "-");
  const singular = name.endsWith("s") ? name.slice(0, -1) : name;
  return isKind(name) ? name : isKind(singular) ? singular : undefined;
}

function isKind(name: string): name is Kind {
  return Object.hasOwn(SECRET_PATHS, name);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

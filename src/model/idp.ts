/** Single sign-on by OpenID Connect: its settings, and what a provider's claims make of a person. */
import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { type Static, Type } from "typebox";
import {
  IDP_CLAIM_VALUE_CHARACTERS_MAX,
  IDP_ENTRIES_MAX,
  IDP_TEXT_CHARACTERS_MAX,
  USERNAME_CHARACTERS_MAX,
} from "./limits.ts";
import { ROLES, type Role } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { FieldFault } from "./refusal.ts";
import { isLinkLocal } from "./secret-destinations.ts";
import { MASK } from "./secrets.ts";
import { checkShape } from "./shape.ts";
import { canonicalUsername, isUsername } from "./user.ts";

/** The document of settings that holds them. */
export const IDP_DOCUMENT = "idp";
/** Where the provider sends the browser back to. */
export const IDP_CALLBACK_PATH = "/api/v1/auth/idp/callback";

const Text = (description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength: IDP_TEXT_CHARACTERS_MAX,
    pattern: "^[\\x20-\\x7E]+$",
    description,
    examples: [example],
  });
const RoleName = Type.Enum([...ROLES]);
const ClaimValue = Type.String({ pattern: `^[^\\p{Cc}]{1,${IDP_CLAIM_VALUE_CHARACTERS_MAX}}$` });
const RoleMapping = Type.Record(ClaimValue, RoleName, {
  maxProperties: IDP_ENTRIES_MAX,
  description: "value of the role claim -> role; of several the greatest",
  examples: [{ "dns-admins": "admin", "dns-team": "editor" }],
});
const Scopes = Type.Array(Type.String({ minLength: 1, maxLength: 100, pattern: "^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$" }), {
  minItems: 1,
  maxItems: IDP_ENTRIES_MAX,
  uniqueItems: true,
});
const Domains = Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: "^[A-Za-z0-9.-]+$" }), {
  maxItems: IDP_ENTRIES_MAX,
  description: "the verified e-mail address must be in one of them",
});

/** With null a field goes back to what it is without one. */
export const IdpUpdate = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    issuer: Type.Optional(
      Type.Union([Text("https, or http on a loopback address", "https://id.corp.example"), Type.Null()]),
    ),
    client_id: Type.Optional(Type.Union([Text("as the provider knows this service", "signpost"), Type.Null()])),
    client_secret: Type.Optional(
      Type.Union([Text("*** keeps the stored one; null: a public client", MASK), Type.Null()]),
    ),
    scopes: Type.Optional(Type.Union([Scopes, Type.Null()])),
    role_claim: Type.Optional(Type.Union([Text("name, or path with dots", "groups"), Type.Null()])),
    role_mapping: Type.Optional(Type.Union([RoleMapping, Type.Null()])),
    default_role: Type.Optional(
      Type.Union([RoleName, Type.Null()], { description: "null: who maps to no role is refused" }),
    ),
    allowed_domains: Type.Optional(Type.Union([Domains, Type.Null()])),
    redirect_uri: Type.Optional(
      Type.Union([
        Text(`ends in ${IDP_CALLBACK_PATH}`, `https://dns.corp.example:8443${IDP_CALLBACK_PATH}`),
        Type.Null(),
      ]),
    ),
    effective: Type.Optional(Type.Unknown({ description: "read-only" })),
  },
  { additionalProperties: false },
);
export type IdpUpdate = Static<typeof IdpUpdate>;

/** As stored: only what was configured. */
export const IdpSettings = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    issuer: Type.Optional(Type.String()),
    client_id: Type.Optional(Type.String()),
    client_secret: Type.Optional(Type.String()),
    scopes: Type.Optional(Type.Array(Type.String())),
    role_claim: Type.Optional(Type.String()),
    role_mapping: Type.Optional(Type.Record(Type.String(), RoleName)),
    default_role: Type.Optional(RoleName),
    allowed_domains: Type.Optional(Type.Array(Type.String())),
    redirect_uri: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type IdpSettings = Static<typeof IdpSettings>;

/** What applies: every field that has a default has a value. */
export type IdpEffective = IdpSettings & {
  readonly enabled: boolean;
  readonly scopes: string[];
  readonly role_claim: string;
  readonly role_mapping: Record<string, Role>;
  readonly allowed_domains: string[];
};

export const IdpView = Type.Object({ ...IdpSettings.properties, effective: IdpSettings });
export type IdpView = Static<typeof IdpView>;
export const IdpStatus = Type.Object({
  enabled: Type.Boolean({ description: "whether /auth/idp/login begins a sign-in" }),
});

/** The settings of a stored document; none where a later version wrote what this one does not know. */
export function idpSettingsOf(stored: unknown): IdpSettings {
  return isIdpSettings(stored) ? stored : {};
}

function isIdpSettings(value: unknown): value is IdpSettings {
  return checkShape(IdpSettings, value).length === 0;
}

/** As a GET shows them: the secret masked. */
export function viewOfIdp(settings: IdpSettings): IdpView {
  const shown = settings.client_secret === undefined ? settings : { ...settings, client_secret: MASK };
  return { ...shown, effective: effectiveIdp(shown) };
}

export function effectiveIdp(settings: IdpSettings): IdpEffective {
  return {
    enabled: false,
    scopes: ["openid", "profile", "email"],
    role_claim: "groups",
    role_mapping: {},
    allowed_domains: [],
    ...settings,
  };
}

/** The settings with the given fields replaced whole; null removes, "***" keeps the secret. */
export function mergeIdp(stored: IdpSettings, given: IdpUpdate): IdpSettings {
  const { effective: _, ...fields } = given;
  const merged = Object.entries({ ...stored, ...fields }).filter(([, value]) => value !== null && value !== undefined);
  const keepsSecret = fields.client_secret === MASK && stored.client_secret !== undefined;
  const { client_secret: sent, ...rest }: IdpSettings = Object.fromEntries(merged);
  const secret = keepsSecret ? stored.client_secret : sent;
  return secret === undefined ? rest : { ...rest, client_secret: secret };
}

/** What is wrong with `merged`, made of `stored` and `given`. */
export function idpFaults(stored: IdpSettings, given: IdpUpdate, merged: IdpSettings): FieldFault[] {
  const faults: FieldFault[] = [];
  const needed = ["issuer", "client_id", "redirect_uri"] as const;
  faults.push(...readOnlyFaults({ effective: viewOfIdp(stored).effective }, given, ["effective"]));
  if (merged.enabled === true) {
    for (const name of needed) {
      if (merged[name] === undefined) faults.push({ pointer: `/${name}`, detail: "is needed while enabled" });
    }
  }
  if (given.client_secret === MASK && stored.client_secret === undefined) {
    faults.push({ pointer: "/client_secret", detail: `${MASK} stands for a stored secret, and there is none` });
  }
  // Else whoever may write settings but not read secrets could have the secret sent to a server of theirs.
  const isMoved = stored.client_secret !== undefined && merged.issuer !== stored.issuer;
  if (isMoved && merged.client_secret === stored.client_secret && given.client_secret !== stored.client_secret) {
    faults.push({ pointer: "/client_secret", detail: "must be given anew, or as null, together with another issuer" });
  }
  faults.push(...issuerFaults(merged.issuer), ...redirectFaults(merged.redirect_uri));
  if (merged.scopes !== undefined && !merged.scopes.includes("openid")) {
    faults.push({ pointer: "/scopes", detail: 'must hold "openid"' });
  }
  return faults;
}

function issuerFaults(issuer: string | undefined): FieldFault[] {
  if (issuer === undefined) return [];
  const pointer = "/issuer";
  const url = safeUrl(issuer);
  if (url === undefined) return [{ pointer, detail: "must be an https URL; http is taken on a loopback address only" }];
  if (issuer.includes("?") || issuer.includes("#"))
    return [{ pointer, detail: "must have neither query nor fragment" }];
  if (isLinkLocal(url)) return [{ pointer, detail: "must not be a link-local address" }];
  return [];
}

function redirectFaults(redirect: string | undefined): FieldFault[] {
  if (redirect === undefined) return [];
  const pointer = "/redirect_uri";
  const url = safeUrl(redirect);
  if (url === undefined) return [{ pointer, detail: "must be an https URL; http is taken on a loopback address only" }];
  if (url.pathname !== IDP_CALLBACK_PATH || redirect.includes("?") || redirect.includes("#")) {
    return [{ pointer, detail: `must end in ${IDP_CALLBACK_PATH}` }];
  }
  return [];
}

/** As `safeUrl`, for what this server itself asks: nothing at a link-local address. */
export function providerUrl(text: string): URL | undefined {
  const url = safeUrl(text);
  return url === undefined || isLinkLocal(url) ? undefined : url;
}

/** The URL where it is https without credentials, or http to this very machine. */
export function safeUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return undefined;
  if (url.protocol === "https:") return url;
  return url.protocol === "http:" && isLoopback(url.hostname) ? url : undefined;
}

function isLoopback(hostname: string): boolean {
  if (hostname === "localhost" || hostname === "[::1]") return true;
  return isIP(hostname) === 4 && hostname.startsWith("127.");
}

/** A path of this server to go to after the sign-in; anything that could lead elsewhere becomes "/". */
export function localPath(text: string | undefined): string {
  // "//host" and "/\host" lead to another host, and browsers drop control characters before they look.
  const isPath = (path: string) => /^\/(?![/\\])[\x21-\x5B\x5D-\x7E]*$/.test(path);
  if (text === undefined || !isPath(text)) return "/";
  const url = URL.parse(text, "https://localhost");
  if (url === null || url.origin !== "https://localhost") return "/";
  // "/.//host" becomes "//host" here.
  const path = `${url.pathname}${url.search}${url.hash}`;
  return isPath(path) ? path : "/";
}

/** What a provider says of a person: claims of the ID token, with those of the user info endpoint. */
export type Claims = Readonly<Record<string, unknown>>;

export type Person = { readonly subject: string; readonly username: string; readonly role: Role };
export type PersonOutcome =
  | { readonly kind: "admitted"; readonly person: Person }
  | { readonly kind: "refused"; readonly reason: string };

/** Who may come in, under which name, with which role. Asked at each sign-in. */
export function personOf(settings: IdpEffective, issuer: string, claims: Claims): PersonOutcome {
  const { sub, email } = claims;
  if (typeof sub !== "string" || sub === "") return { kind: "refused", reason: "the provider names no subject" };
  if (settings.allowed_domains.length > 0 && !isInDomains(claims, settings.allowed_domains)) {
    return { kind: "refused", reason: "no verified e-mail address in an allowed domain" };
  }
  const role = roleOf(settings, claims);
  if (role === undefined) return { kind: "refused", reason: "no claim of this person maps to a role" };
  const subject = `${issuer} ${sub}`;
  const named = [claims.preferred_username, email, sub].find(
    (text) => typeof text === "string" && isUsername(canonicalUsername(text)),
  );
  const username = typeof named === "string" ? canonicalUsername(named) : nameForSubject("user", subject);
  return { kind: "admitted", person: { subject, username, role } };
}

/** A name that no other subject gets, for one whose own name is taken or cannot be a name here. */
export function nameForSubject(username: string, subject: string): string {
  const mark = createHash("sha256").update(subject).digest("hex").slice(0, 12);
  return `${username.slice(0, USERNAME_CHARACTERS_MAX - mark.length - 1)}-${mark}`;
}

function isInDomains({ email, email_verified }: Claims, domains: readonly string[]): boolean {
  // An address that the provider does not vouch for may be anybody's.
  if (typeof email !== "string" || email_verified !== true) return false;
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  return email.includes("@") && domains.some((allowed) => allowed.toLowerCase() === domain);
}

function roleOf(settings: IdpEffective, claims: Claims): Role | undefined {
  const claim = claimAt(claims, settings.role_claim);
  const values = (Array.isArray(claim) ? claim : [claim]).filter((value) => typeof value === "string");
  const roles = values.flatMap((value) => {
    const role = Object.hasOwn(settings.role_mapping, value) ? settings.role_mapping[value] : undefined;
    return role === undefined ? [] : [role];
  });
  const greatest = ROLES.findLast((role) => roles.includes(role));
  return greatest ?? settings.default_role;
}

/** A claim by its name, or by a path with dots (`realm_access.roles`). */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Object.entries(value).find(([key]) => key === name)?.[1];
  }
  return value;
}

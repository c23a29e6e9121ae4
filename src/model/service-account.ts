/** Service accounts: what is sent and shown, their tokens, how long they live, and which rotation does what. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Static, Type } from "typebox";
import {
  COMMENT_CHARACTERS_MAX,
  SERVICE_ACCOUNT_NAME_CHARACTERS_MAX,
  SERVICE_ACCOUNT_YEARS_MAX,
  SERVICE_ACCOUNT_ZONES_MAX,
} from "./limits.ts";
import { ID_PREFIXES, ROLES, type ServiceAccountBody } from "./objects.ts";
import type { ViewTimes } from "./record.ts";
import type { FieldFault } from "./refusal.ts";
import { MASK } from "./secrets.ts";

const RoleName = Type.Enum([...ROLES]);
const Name = Type.String({
  minLength: 1,
  maxLength: SERVICE_ACCOUNT_NAME_CHARACTERS_MAX,
  description: "letters, digits, spaces and . _ - @ : / within; unique",
  examples: ["deploy"],
});

export const ServiceAccountCreate = Type.Object(
  {
    name: Name,
    role: RoleName,
    zone_ids: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), {
        maxItems: SERVICE_ACCOUNT_ZONES_MAX,
        uniqueItems: true,
        description: "the only zones that the token may write; left out: all; empty: none",
      }),
    ),
    comment: Type.Optional(Type.String({ maxLength: COMMENT_CHARACTERS_MAX })),
    expires_at: Type.Optional(
      Type.Union([Type.String({ format: "date-time", maxLength: 64 }), Type.Null()], {
        description: `at most ${SERVICE_ACCOUNT_YEARS_MAX} years ahead; left out or null: never`,
        examples: ["2030-01-01T00:00:00Z"],
      }),
    ),
  },
  { additionalProperties: false },
);
export type ServiceAccountCreate = Static<typeof ServiceAccountCreate>;

export const ServiceAccountRotate = Type.Object(
  { version: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 31, description: "the version that is known" })) },
  { additionalProperties: false },
);

export const ServiceAccountView = Type.Object({
  id: Type.String({ examples: ["sva_mfrggzdfmztwq2lknnwg"] }),
  name: Name,
  role: RoleName,
  zone_ids: Type.Optional(Type.Array(Type.String())),
  comment: Type.Optional(Type.String()),
  expires_at: Type.Optional(Type.String({ format: "date-time" })),
  revoked: Type.Boolean(),
  version: Type.Integer({ description: "counts the secrets that were made" }),
  issuing_node: Type.String({ description: "the node that takes the token" }),
  token: Type.Optional(Type.String({ description: "shown once, when it is made; otherwise ***" })),
  created_at: Type.String({ format: "date-time" }),
  updated_at: Type.String({ format: "date-time" }),
});
export type ServiceAccountView = Static<typeof ServiceAccountView>;

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9 ._@:/-]*[A-Za-z0-9._@:/-])?$/;

/** Of name and expiry; whether the zones exist is for the store to say. */
export function serviceAccountFaults(given: ServiceAccountCreate, nowMs: number): FieldFault[] {
  const faults: FieldFault[] = [];
  if (!NAME.test(given.name)) {
    const detail = "must hold only letters, digits, spaces and . _ - @ : / and begin with a letter or digit";
    faults.push({ pointer: "/name", detail });
  }
  if (given.expires_at !== undefined && given.expires_at !== null) {
    faults.push(...expiryFaults(Date.parse(given.expires_at), nowMs));
  }
  return faults;
}

function expiryFaults(expiresMs: number, nowMs: number): FieldFault[] {
  const pointer = "/expires_at";
  const latest = new Date(nowMs);
  latest.setUTCFullYear(latest.getUTCFullYear() + SERVICE_ACCOUNT_YEARS_MAX);
  if (Number.isNaN(expiresMs)) return [{ pointer, detail: "must be a time of RFC 3339" }];
  if (expiresMs <= nowMs) return [{ pointer, detail: "has passed" }];
  if (expiresMs > latest.getTime()) {
    return [{ pointer, detail: `must not be more than ${SERVICE_ACCOUNT_YEARS_MAX} years ahead` }];
  }
  return [];
}

const TOKEN_PREFIX = "svcsat_";
const SECRET_BYTES = 32;
/** The prefix, the account's id without its own, and 256 random bits. */
const TOKEN = /^svcsat_([a-z2-7]{20})_([A-Za-z0-9_-]{43})$/;

export type ServiceAccountToken = { readonly accountId: string; readonly secret: string };

/** A new secret for that account. The token names the account, so that it is found without a search. */
export function newToken(accountId: string): { readonly token: string; readonly secretHash: string } {
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  const token = `${TOKEN_PREFIX}${accountId.slice(ID_PREFIXES["service-account"].length + 1)}_${secret}`;
  return { token, secretHash: hashOf(secret) };
}

export function isServiceAccountToken(text: string): boolean {
  return text.startsWith(TOKEN_PREFIX);
}

/** Undefined where the text cannot be a token. */
export function parseToken(text: string): ServiceAccountToken | undefined {
  const [, id, secret] = TOKEN.exec(text) ?? [];
  if (id === undefined || secret === undefined) return undefined;
  return { accountId: `${ID_PREFIXES["service-account"]}_${id}`, secret };
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Compares in constant time. */
export function isSecretOf(account: ServiceAccountBody, secret: string): boolean {
  const stored = Buffer.from(account.secret_hash, "hex");
  const given = Buffer.from(hashOf(secret), "hex");
  return stored.length === given.length && timingSafeEqual(stored, given);
}

export function hasExpired(account: ServiceAccountBody, nowMs: number): boolean {
  return account.expires_at !== undefined && Date.parse(account.expires_at) <= nowMs;
}

/**
 * What a rotation does that knows that version: the current one (or none named) mints a secret; the one before was this
 * very call, whose answer may have been lost, and does nothing; any other is a caller who knows another account.
 */
export function rotationOutcome(
  account: ServiceAccountBody,
  version: number | undefined,
): "mint" | "done" | "mismatch" {
  if (version === undefined || version === account.version) return "mint";
  return version === account.version - 1 ? "done" : "mismatch";
}

/** `token` is given where it was made just now. */
export function viewOfServiceAccount(
  account: ServiceAccountBody,
  { createdAt, updatedAt }: ViewTimes,
  token: string = MASK,
): ServiceAccountView {
  const { id, name, role, zone_ids, comment, expires_at, revoked, version, issuing_node } = account;
  return {
    id,
    name,
    role,
    ...(zone_ids === undefined ? {} : { zone_ids: [...zone_ids] }),
    ...(comment === undefined ? {} : { comment }),
    ...(expires_at === undefined ? {} : { expires_at }),
    revoked,
    version,
    issuing_node,
    token,
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

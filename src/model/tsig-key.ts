/** Keys that sign DNS messages (RFC 8945): their shape, their rules, and what a client sees of them. */
import { randomBytes } from "node:crypto";
import Type, { type Static } from "typebox";
import { nameFromText } from "../dns/name.ts";
import type { TsigKey } from "../dns/tsig.ts";
import { type TsigAlgorithm, tsigMacBytes } from "../dns/tsig-algorithms.ts";
import * as limits from "./limits.ts";
import { anyFullName, fullName, relativeName } from "./names.ts";
import { RECORD_TYPES, type TsigGrant, type TsigKeyBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";
import { MASK, maskSecrets } from "./secrets.ts";

const ALGORITHMS = [
  ...(["hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1"] as const),
  "hmac-md5",
] as const satisfies readonly TsigAlgorithm[];
/** RFC 8945 section 6 advises against it: it is taken only where the node's configuration says so. */
const MD5: TsigAlgorithm = "hmac-md5";

const MD5_FAULT: FieldFault = {
  pointer: "/algorithm",
  detail: "must not be hmac-md5: dns.tsig_md5 is false on this node",
};

const Algorithm = Type.Enum([...ALGORITHMS]);
/** Base64 of the longest secret. */
const Secret = Type.String({ maxLength: Math.ceil(limits.TSIG_SECRET_BYTES_MAX / 3) * 4 });
const NameText = Type.String({ minLength: 1, maxLength: limits.NAME_TEXT_MAX });

const Grant = Type.Object(
  {
    zone: Type.String({
      minLength: 1,
      maxLength: limits.NAME_TEXT_MAX,
      description: "Name of the zone, with its last dot.",
    }),
    names: Type.Optional(
      Type.Array(NameText, {
        maxItems: limits.TSIG_GRANT_NAMES_MAX,
        uniqueItems: true,
        description:
          "Names relative to the zone that may be updated; absent: all. A label * stands for one or more labels: *.dev is all below dev.",
      }),
    ),
    types: Type.Optional(
      Type.Array(Type.Enum([...RECORD_TYPES]), {
        maxItems: RECORD_TYPES.length,
        uniqueItems: true,
        description: "Types that may be updated; absent: all.",
      }),
    ),
    transfer: Type.Optional(Type.Boolean()),
    update: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
const Grants = Type.Array(Grant, { maxItems: limits.TSIG_GRANTS_MAX });

export const TsigKeyCreate = Type.Object(
  {
    name: NameText,
    algorithm: Type.Optional(Algorithm),
    secret: Type.Optional(Secret),
    grants: Type.Optional(Grants),
    management_view: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
export type TsigKeyCreate = Static<typeof TsigKeyCreate>;

/** Read-only fields may come back as GET gave them. */
export const TsigKeyUpdate = Type.Object(
  {
    id: Type.Optional(Type.String({ maxLength: limits.ID_MAX })),
    name: Type.Optional(NameText),
    algorithm: Type.Optional(Algorithm),
    secret: Type.Optional(Secret),
    grants: Type.Optional(Type.Union([Grants, Type.Null()])),
    management_view: Type.Optional(Type.Boolean()),
    created_at: Type.Optional(Type.String({ format: "date-time" })),
    updated_at: Type.Optional(Type.String({ format: "date-time" })),
  },
  { additionalProperties: false },
);
export type TsigKeyUpdate = Static<typeof TsigKeyUpdate>;

export const TsigKeyView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  algorithm: Algorithm,
  secret: Type.String({ description: '"***", except in the answer that shows a secret made by the server.' }),
  grants: Type.Optional(Grants),
  management_view: Type.Boolean(),
  created_at: Type.String({ format: "date-time" }),
  updated_at: Type.String({ format: "date-time" }),
});

export function tsigKeyView(key: TsigKeyBody, times: ViewTimes): Record<string, unknown> {
  return { ...maskSecrets("tsig-key", key), created_at: times.createdAt, updated_at: times.updatedAt };
}

/** The canonical name behind a name as a client writes it, with or without its last dot; undefined: it is none. */
export function tsigKeyName(text: string): string | undefined {
  const outcome = anyFullName(text);
  return outcome.kind === "name" && outcome.text !== "." ? outcome.text : undefined;
}

/** The body of a new key, with a secret of its own where none is given. Throws `invalid_request` with every fault. */
export function tsigKeyFromCreate(
  given: TsigKeyCreate,
  id: string,
  isMd5Enabled: boolean,
): { readonly key: TsigKeyBody; readonly isSecretMade: boolean } {
  const name = tsigKeyName(given.name);
  const faults: FieldFault[] = name === undefined ? [{ pointer: "/name", detail: nameDetail(given.name) }] : [];
  const algorithm = given.algorithm ?? "hmac-sha256";
  if (algorithm === MD5 && !isMd5Enabled) faults.push(MD5_FAULT);
  if (given.secret === MASK)
    faults.push({ pointer: "/secret", detail: '"***" stands for a stored secret, and there is none' });
  else if (given.secret !== undefined) faults.push(...secretFaults(given.secret));
  const grants = canonicalGrants(given.grants);
  refuseFaults([...faults, ...grants.faults]);
  const key: TsigKeyBody = {
    id,
    name: name ?? "",
    algorithm,
    secret: given.secret ?? randomBytes(tsigMacBytes(algorithm)).toString("base64"),
    ...(grants.grants === undefined ? {} : { grants: grants.grants }),
    management_view: given.management_view ?? false,
  };
  refuseFaults(sizeFaults(key));
  return { key, isSecretMade: given.secret === undefined };
}

/** The body after an update; the name is its address and stays. Throws `invalid_request` with every fault. */
export function tsigKeyWithUpdate(
  current: TsigKeyBody,
  given: TsigKeyUpdate,
  times: ViewTimes,
  isMd5Enabled: boolean,
): TsigKeyBody {
  const view = tsigKeyView(current, times);
  const { name, ...others } = given;
  const faults = readOnlyFaults(view, others, ["id", "created_at", "updated_at"]);
  if (name !== undefined && tsigKeyName(name) !== current.name) {
    faults.push({ pointer: "/name", detail: "is read-only and differs from the stored value" });
  }
  if (given.algorithm === MD5 && current.algorithm !== MD5 && !isMd5Enabled) faults.push(MD5_FAULT);
  const secret = given.secret === undefined || given.secret === MASK ? current.secret : given.secret;
  if (secret !== current.secret) faults.push(...secretFaults(secret));
  const grants =
    given.grants === undefined ? { grants: current.grants, faults: [] } : canonicalGrants(given.grants ?? undefined);
  refuseFaults([...faults, ...grants.faults]);
  const key: TsigKeyBody = {
    id: current.id,
    name: current.name,
    algorithm: given.algorithm ?? current.algorithm,
    secret,
    ...(grants.grants === undefined ? {} : { grants: grants.grants }),
    management_view: given.management_view ?? current.management_view,
  };
  refuseFaults(sizeFaults(key));
  return key;
}

/** The key as messages are signed with it; undefined: this node does not take its algorithm. */
export function signingKey(body: TsigKeyBody, isMd5Enabled: boolean): TsigKey | undefined {
  const name = nameFromText(body.name);
  const algorithm = ALGORITHMS.find((known) => known === body.algorithm);
  if (name.kind === "error" || algorithm === undefined || (algorithm === MD5 && !isMd5Enabled)) return undefined;
  return { name: name.name, algorithm, secret: new Uint8Array(Buffer.from(body.secret, "base64")) };
}

function nameDetail(text: string): string {
  const outcome = anyFullName(text);
  return outcome.kind === "fault" ? outcome.detail : "must not be the root";
}

/** Base64 as RFC 4648 section 4 has it: another spelling of the same bytes would come back changed. */
function secretFaults(secret: string): FieldFault[] {
  const bytes = Buffer.from(secret, "base64");
  if (bytes.toString("base64") !== secret) return [{ pointer: "/secret", detail: "must be base64 with its padding" }];
  if (bytes.length >= limits.TSIG_SECRET_BYTES_MIN && bytes.length <= limits.TSIG_SECRET_BYTES_MAX) return [];
  const detail = `must have from ${limits.TSIG_SECRET_BYTES_MIN} to ${limits.TSIG_SECRET_BYTES_MAX} bytes`;
  return [{ pointer: "/secret", detail }];
}

function sizeFaults(key: TsigKeyBody): FieldFault[] {
  if (Buffer.byteLength(JSON.stringify(key)) <= limits.TSIG_KEY_BYTES_MAX) return [];
  return [{ pointer: "/grants", detail: `the key must not be longer than ${limits.TSIG_KEY_BYTES_MAX} bytes of JSON` }];
}

type CheckedGrants = { readonly grants: readonly TsigGrant[] | undefined; readonly faults: readonly FieldFault[] };

/** A grant may name a zone that is not there yet, and grants nothing until it is. */
function canonicalGrants(given: Static<typeof Grants> | undefined): CheckedGrants {
  if (given === undefined) return { grants: undefined, faults: [] };
  const faults: FieldFault[] = [];
  const grants = given.map((grant, index): TsigGrant => {
    const zone = fullName(grant.zone);
    if (zone.kind === "fault") {
      faults.push({ pointer: `/grants/${index}/zone`, detail: zone.detail });
      return { ...grant };
    }
    const names = grant.names?.map((name, place) => {
      const outcome = relativeName(name, zone.text);
      if (outcome.kind === "name") return outcome.text;
      faults.push({ pointer: `/grants/${index}/names/${place}`, detail: outcome.detail });
      return name;
    });
    return { ...grant, zone: zone.text, ...(names === undefined ? {} : { names }) };
  });
  return { grants, faults: faults.slice(0, limits.FAULTS_MAX) };
}

/** Users: what is sent and shown, and the rules of names and passwords. */
import { type Static, Type } from "typebox";
import { PASSWORD_CHARACTERS_MAX, PASSWORD_CHARACTERS_MIN, USERNAME_CHARACTERS_MAX } from "./limits.ts";
import { ROLES, type UserBody } from "./objects.ts";
import { readOnlyFaults } from "./put.ts";
import type { FieldFault } from "./refusal.ts";

/** The user that the first start makes and that break-glass restores. */
export const FIRST_ADMIN = "admin";

const RoleName = Type.Enum([...ROLES]);
const Password = Type.String({
  minLength: PASSWORD_CHARACTERS_MIN,
  maxLength: PASSWORD_CHARACTERS_MAX,
  writeOnly: true,
  examples: ["correct horse battery staple"],
});
const Username = Type.String({
  minLength: 1,
  maxLength: USERNAME_CHARACTERS_MAX,
  description: "letters, digits and . _ - @ +, beginning with a letter or digit; kept in lower case",
  examples: ["alice"],
});

export const UserCreate = Type.Object(
  { username: Username, password: Password, role: RoleName, enabled: Type.Optional(Type.Boolean({ default: true })) },
  { additionalProperties: false },
);
export type UserCreate = Static<typeof UserCreate>;

export const UserView = Type.Object({
  id: Type.String({ examples: ["usr_mfrggzdfmztwq2lknnwg"] }),
  username: Username,
  role: RoleName,
  enabled: Type.Boolean(),
  source: Type.Enum(["local", "idp"], { description: "idp: signs in through the identity provider only" }),
});
export type UserView = Static<typeof UserView>;

/** `id`, `username` and `source` may be sent back as they were read. */
export const UserUpdate = Type.Object(
  {
    id: Type.Optional(Type.String({ maxLength: 64 })),
    username: Type.Optional(Username),
    source: Type.Optional(Type.Enum(["local", "idp"])),
    role: Type.Optional(RoleName),
    enabled: Type.Optional(Type.Boolean()),
    password: Type.Optional(Password),
  },
  { additionalProperties: false },
);
export type UserUpdate = Static<typeof UserUpdate>;

const USERNAME = /^[a-z0-9][a-z0-9._@+-]*$/;

/** The name as it is stored and compared. */
export function canonicalUsername(username: string): string {
  // Only ASCII letters may be in a name, and toLowerCase() makes one of the Kelvin sign.
  return username.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

export function isUsername(text: string): boolean {
  return text.length <= USERNAME_CHARACTERS_MAX && USERNAME.test(text);
}

/** Faults of a password for a local user. Lengths count characters, not bytes. */
export function passwordFaults(password: string, username: string): FieldFault[] {
  const pointer = "/password";
  const length = [...password].length;
  if (length < PASSWORD_CHARACTERS_MIN) {
    return [{ pointer, detail: `must have at least ${PASSWORD_CHARACTERS_MIN} characters` }];
  }
  if (length > PASSWORD_CHARACTERS_MAX) {
    return [{ pointer, detail: `must not be longer than ${PASSWORD_CHARACTERS_MAX} characters` }];
  }
  if (!password.isWellFormed()) return [{ pointer, detail: "holds half of a surrogate pair" }];
  if (canonicalUsername(password) === username) return [{ pointer, detail: "must not be the user's name" }];
  return [];
}

export function userCreateFaults(given: UserCreate): FieldFault[] {
  const username = canonicalUsername(given.username);
  const faults: FieldFault[] = [];
  if (!isUsername(username)) {
    const detail = "must hold only letters, digits and . _ - @ +, and begin with a letter or digit";
    faults.push({ pointer: "/username", detail });
  }
  return [...faults, ...passwordFaults(given.password, username)];
}

/** What a PUT may not change, and what belongs to the identity provider. */
export function userUpdateFaults(user: UserBody, given: UserUpdate): FieldFault[] {
  const sent = given.username === undefined ? given : { ...given, username: canonicalUsername(given.username) };
  const faults = readOnlyFaults(viewOfUser(user), sent, ["id", "username", "source"]);
  const isIdp = sourceOf(user) === "idp";
  if (given.password !== undefined) {
    if (isIdp) faults.push({ pointer: "/password", detail: "is not kept for a user of the identity provider" });
    else faults.push(...passwordFaults(given.password, user.username));
  }
  if (isIdp && given.role !== undefined && given.role !== user.role) {
    const detail = "comes from the identity provider at each sign-in: change it there, or disable the user here";
    faults.push({ pointer: "/role", detail });
  }
  return faults;
}

function sourceOf(user: UserBody): "local" | "idp" {
  return user.idp_subject === undefined ? "local" : "idp";
}

/** Whether the user is an administrator who can sign in even when the identity provider cannot be reached. */
export function isLocalAdmin(user: UserBody): boolean {
  return user.enabled && user.role === "admin" && user.password_hash !== undefined;
}

export function viewOfUser(user: UserBody): UserView {
  const { id, username, role, enabled } = user;
  return { id, username, role, enabled, source: sourceOf(user) };
}

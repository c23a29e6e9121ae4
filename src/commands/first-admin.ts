/** The administrator whom nobody made: at the first start, and by break-glass while the service is stopped. */
import { randomBytes } from "node:crypto";
import { OperatorError } from "../base/errors.ts";
import type { UserBody } from "../model/objects.ts";
import { FIRST_ADMIN, passwordFaults } from "../model/user.ts";
import { LIST_PAGE_MAX, type Store, type StoreTransaction } from "../store/store.ts";
import { createPasswords } from "./passwords.ts";
import { type CommandContext, newId } from "./run.ts";
import { newEpoch } from "./users.ts";

/** 144 random bits in 24 characters that survive copying. */
export function randomPassword(): string {
  return randomBytes(18).toString("base64url");
}

function refuseWeak(password: string, what: string): void {
  const [fault] = passwordFaults(password, FIRST_ADMIN);
  if (fault !== undefined) throw new OperatorError(`${what} ${fault.detail}`);
}

/**
 * Makes the user `admin` where there is no user at all. Resolves with the password that it drew, for the operator to see
 * once; undefined where one was given, or where there are users. The user carries stamp zero: in a cluster any edit of
 * another node, and the admin of the oldest node, win over it. Throws an OperatorError for a password that is too weak.
 */
export async function ensureAdmin(
  { store }: Pick<CommandContext, "store">,
  { initialPassword }: { readonly initialPassword?: string | undefined } = {},
): Promise<string | undefined> {
  if (store.count("user") > 0) return undefined;
  if (initialPassword !== undefined) refuseWeak(initialPassword, "auth.initial_admin_password");
  const password = initialPassword ?? randomPassword();
  const hash = await createPasswords().hash(password);
  await store.write((tx) => {
    const body: UserBody = {
      id: newId("user"),
      username: FIRST_ADMIN,
      role: "admin",
      enabled: true,
      password_hash: hash,
      session_epoch: newEpoch(),
    };
    tx.put("user", body, { stampZero: true });
    noteSystem(tx, "create", body, "first start");
  });
  return initialPassword === undefined ? password : undefined;
}

export type FirstAdminOptions = {
  readonly context: Pick<CommandContext, "store">;
  readonly initialPassword?: string | undefined;
  /** Called with a password that was drawn, for the operator to see once. */
  readonly onPassword: (password: string) => void;
  /** Ids of the nodes that are alive, this one among them. */
  readonly aliveNodes: () => readonly string[];
  /** Runs something once after so many milliseconds; what is returned calls it off. */
  readonly after: (delayMs: number, run: () => void) => () => void;
};

export type FirstAdmin = {
  /**
   * To be called at the start. A node that joins others and has never synced makes none: theirs is on its way. Throws an
   * OperatorError for a password that is too weak, also where it would be needed only later.
   */
  readonly atStart: (mustSync: boolean) => Promise<void>;
  /**
   * To be called when the first sync is over. Where all nodes began empty, the first of them in the order of ids makes the
   * admin, and the others only where that brings none, so that one password is shown and holds.
   */
  readonly afterSync: () => Promise<void>;
};

const ELECTED_MS = 30_000;

/** Makes the admin of the first start at the right moment, and on the right node. */
export function createFirstAdmin(options: FirstAdminOptions): FirstAdmin {
  const { context, initialPassword, onPassword, aliveNodes, after } = options;
  const make = async () => {
    const password = await ensureAdmin(context, { initialPassword });
    if (password !== undefined) onPassword(password);
  };
  return {
    atStart: async (mustSync) => {
      if (!mustSync) return make();
      if (initialPassword !== undefined) refuseWeak(initialPassword, "auth.initial_admin_password");
    },
    afterSync: async () => {
      const [first] = [...aliveNodes()].sort();
      if (first !== undefined && first !== context.store.nodeId) await someUser(context.store, after);
      await make();
    },
  };
}

/** Resolves when a user has come, or after a while. */
function someUser(store: Pick<Store, "count" | "onChange">, after: FirstAdminOptions["after"]): Promise<void> {
  return new Promise((resolve) => {
    if (store.count("user") > 0) return resolve();
    const settle = () => {
      end();
      cancel();
      resolve();
    };
    const end = store.onChange(() => {
      if (store.count("user") > 0) settle();
    });
    const cancel = after(ELECTED_MS, settle);
  });
}

/**
 * Gives the user `admin` that password, makes it an enabled admin again (or makes it at all), and ends all its sessions.
 * Throws an OperatorError for a password that is too weak, and then nothing has changed.
 */
export async function resetAdminPassword(store: Store, password: string): Promise<void> {
  refuseWeak(password, "the password");
  const hash = await createPasswords().hash(password);
  await store.write((tx) => {
    const before = tx.get("user", [FIRST_ADMIN])?.body;
    const body: UserBody = {
      id: before?.id ?? newId("user"),
      username: FIRST_ADMIN,
      role: "admin",
      enabled: true,
      password_hash: hash,
      session_epoch: newEpoch(),
    };
    tx.put("user", body);
    if (before !== undefined) deleteAllSessions(tx, before.id);
    noteSystem(tx, "reset-password", body, "break-glass: enabled, with a new password; all sessions ended");
  });
}

function deleteAllSessions(tx: StoreTransaction, userId: string): void {
  let page = tx.list("session", { limit: LIST_PAGE_MAX });
  for (;;) {
    const last = page.at(-1);
    if (last === undefined) return;
    for (const { key, body } of page) if (body.user_id === userId) tx.delete("session", key);
    page = tx.list("session", { limit: LIST_PAGE_MAX, after: last.key });
  }
}

function noteSystem(tx: StoreTransaction, action: string, user: UserBody, detail: string): void {
  tx.audit({
    user_id: "",
    user_name: "system",
    source_address: "",
    request_id: "",
    action,
    resource: "user",
    resource_id: user.id,
    resource_name: user.username,
    result: "success",
    detail,
  });
}

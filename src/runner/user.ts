/** The user that scripts run as. */
import { readFileSync } from "node:fs";
import { OperatorError } from "../base/errors.ts";

export type ScriptUser = { readonly userId: number; readonly groupId: number };

/**
 * Where no user is named. No account has this number, nor does systemd give it to anybody: it lies in the one range below
 * 65536 that its documentation of users, groups and ids calls unused.
 */
export const DEFAULT_USER_ID = 60_953;
/** From here on numbers mean "nobody" or "no change" to some system call. */
const USER_ID_END = 0xffff_fffe;

type Account = ScriptUser & { readonly name: string };

/** Accounts of a text like /etc/passwd. */
function accountsOf(passwd: string): Account[] {
  return passwd.split("\n").flatMap((line) => {
    const [name = "", , userId = "", groupId = ""] = line.split(":");
    if (name === "" || !/^\d+$/.test(userId) || !/^\d+$/.test(groupId)) return [];
    return [{ name, userId: Number(userId), groupId: Number(groupId) }];
  });
}

/**
 * The user by the name of an account of this machine or by number, "" for the default. A number without an account has a
 * group of its own number. Throws OperatorError for one that is unknown, and for root.
 */
export function scriptUser(text: string, passwd = readFileSync("/etc/passwd", "utf8")): ScriptUser {
  const accounts = accountsOf(passwd);
  const isNumber = /^\d{1,10}$/.test(text);
  const userId = text === "" ? DEFAULT_USER_ID : Number(text);
  const account = accounts.find((one) => (isNumber || text === "" ? one.userId === userId : one.name === text));
  if (account === undefined && !isNumber && text !== "") {
    throw new OperatorError(`there is no user "${text}" on this machine to run scripts as`);
  }
  if (account !== undefined && text === "") {
    const whose = `user ${DEFAULT_USER_ID}, the default, is ${account.name} on this machine`;
    throw new OperatorError(`${whose}; name the user that scripts run as`);
  }
  const user = account ?? { userId, groupId: userId };
  if (user.userId === 0 || user.groupId === 0)
    throw new OperatorError("scripts must not run as root, nor in its group");
  if (user.userId >= USER_ID_END) throw new OperatorError(`${text} is not the number of a user`);
  return { userId: user.userId, groupId: user.groupId };
}

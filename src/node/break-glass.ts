/** The way back in for who has lost the admin's password: with the service stopped, on the machine that holds the data. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { randomPassword, resetAdminPassword } from "../commands/first-admin.ts";
import { openLibc } from "../listen/linux/libc.ts";
import { openStore } from "../store/open-store.ts";
import type { Config } from "./config.ts";
import { openDataDirectory } from "./data-directory.ts";
import { nodeKeys } from "./keys.ts";
import { SECRET_FILE_BYTES_MAX } from "./limits.ts";
import { nodeIdOf } from "./node-id.ts";

/**
 * Gives the user `admin` the password, or a fresh random one, enables it and ends all its sessions. Resolves with the
 * password once that is on the disk. Throws OperatorError, with nothing changed, while the service runs, where there is no
 * store, and where its secrets do not open under the configured key.
 */
export async function resetPassword(config: Config, given: string | undefined): Promise<string> {
  const directory = config["node.data_dir"];
  if (!existsSync(join(directory, "store"))) {
    throw new OperatorError(`there is no store in the data directory ${directory}; node.data_dir names it`);
  }
  const data = openDataDirectory(directory, openLibc());
  try {
    const keys = nodeKeys(data.key, config["replication.encrypt_key"]);
    await using store = await openStore({
      directory,
      nodeId: nodeIdOf(directory, config["node.id"]),
      secretKey: keys.store,
      ...(keys.formerStore === undefined ? {} : { previousFileKey: keys.formerStore }),
    });
    const password = given ?? randomPassword();
    await resetAdminPassword(store, password);
    return password;
  } finally {
    data.release();
  }
}

/** All of standard input without the newline at its end. Throws OperatorError where it is no text or far too long. */
export async function readPassword(input: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    length += chunk.length;
    if (length > SECRET_FILE_BYTES_MAX) throw new OperatorError("the password on standard input is too long");
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, "");
  } catch {
    throw new OperatorError("the password on standard input is not UTF-8");
  }
}

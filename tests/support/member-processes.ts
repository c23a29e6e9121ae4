/** Members in processes of their own, which may be stopped and killed. */
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "./process.ts";
import { waitFor } from "./wait.ts";

const ENTRY = fileURLToPath(new URL("./member-entry.ts", import.meta.url));
const START_MS = 30_000;

export type MemberProcess = {
  readonly name: string;
  readonly child: Child;
  /** What it was told so far: "join NAME", "suspect NAME", "update NAME", "leave NAME dead", "leave NAME left". */
  readonly events: () => readonly string[];
};

function linesOf(child: Child): string[] {
  return child
    .output()
    .split("\n")
    .filter((line) => line !== "");
}

async function startOne(name: string, key: string, join: string | undefined): Promise<[MemberProcess, string]> {
  const child = await startChild(name, process.execPath, [ENTRY, name, key, ...(join === undefined ? [] : [join])]);
  const port = await waitFor(`${name} has a port`, START_MS, () => {
    if (child.status() !== undefined) throw new Error(`${name} ended\n${child.output()}`);
    return linesOf(child)
      .find((line) => line.startsWith("port "))
      ?.slice(5);
  });
  const events = () => linesOf(child).filter((line) => !line.startsWith("port "));
  return [{ name, child, events }, `127.0.0.1:${port}`];
}

/** "member-1" to "member-N", of which the others join the first; settles when each knows all. */
export async function startMemberProcesses(count: number): Promise<readonly MemberProcess[]> {
  const key = randomBytes(32).toString("hex");
  const [first, address] = await startOne("member-1", key, undefined);
  const rest = Array.from({ length: count - 1 }, (_, at) => startOne(`member-${at + 2}`, key, address));
  const members = [first, ...(await Promise.all(rest)).map(([member]) => member)];
  for (const { name, events } of members) {
    await waitFor(`${name} knows all`, START_MS, () => {
      return events().filter((event) => event.startsWith("join ")).length >= count - 1;
    });
  }
  return members;
}

/** Blocklists for tests: put as the API does, but read in the same thread. */
import { type BlocklistTools, putBlocklist, viewBlocklist } from "../../src/commands/blocklist.ts";
import { parseBlocklist } from "../../src/commands/blocklist-parse.ts";
import type { CommandContext } from "../../src/commands/run.ts";
import type { BlocklistBody, BlocklistPartBody } from "../../src/model/objects.ts";
import type { Store } from "../../src/store/store.ts";
import { type CallerOptions, testCaller } from "./commands.ts";

export const TOOLS: BlocklistTools = {
  read: async (body) => {
    const { list, part } = parseBlocklist(body);
    const parts = async (keys: readonly string[]) => keys.flatMap((key) => part(key) ?? []);
    return { list, parts, [Symbol.asyncDispose]: async () => undefined };
  },
  inForce: async () => undefined,
};

export function bodyOf(domains: readonly string[]): Uint8Array {
  return Uint8Array.from(Buffer.from(JSON.stringify({ domains })));
}

export function putList(context: CommandContext, domains: readonly string[], caller: CallerOptions = {}) {
  return putBlocklist(context, testCaller(caller), TOOLS, bodyOf(domains), new AbortController().signal);
}

export async function listOf(store: Pick<Store, "get">): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const some of viewBlocklist(store).names()) names.push(...some);
  return names;
}

/** The objects that a list consists of. */
export function objectsOf(domains: readonly string[]): {
  readonly list: BlocklistBody;
  readonly parts: readonly BlocklistPartBody[];
} {
  const { list, part } = parseBlocklist(bodyOf(domains));
  return { list, parts: list.shards.flatMap((key) => part(key) ?? []) };
}

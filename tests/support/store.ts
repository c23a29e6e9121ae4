import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandContext } from "../../src/commands/run.ts";
import { type NodeStore, openStore, type StoreOptions } from "../../src/store/open-store.ts";

export type TemporaryStore = AsyncDisposable & {
  readonly store: NodeStore;
  readonly context: CommandContext;
  readonly directory: string;
};

/** A real store in a directory of its own, which goes with it. */
export async function temporaryStore(options: Partial<StoreOptions> = {}): Promise<TemporaryStore> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-store-"));
  const store = await openStore({
    directory,
    nodeId: "test-node",
    secretKey: { kind: "file", key: randomBytes(32) },
    ...options,
  });
  return {
    store,
    directory,
    context: { store, now: options.now ?? Date.now, log: () => undefined },
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A blocklist without a store. */
import {
  BLOCKLIST_SHARDS,
  beginBlocklist,
  blocklistShard,
  putShard,
  showBlocklist,
} from "../../src/image/blocklist.ts";
import { routingChanged } from "../../src/image/writer.ts";
import type { ImageWriter } from "../../src/image/writer-state.ts";

/** Lets these names be blocked, and no others: wire names in lower case. */
export function blockNames(writer: ImageWriter, names: readonly Uint8Array[]): void {
  const shards = Map.groupBy(names, (name) => blocklistShard(name, 0, name.length - 1));
  const draft = beginBlocklist(writer);
  for (let shard = 0; shard < BLOCKLIST_SHARDS; shard++) {
    const packed = Buffer.concat(shards.get(shard) ?? []);
    putShard(writer, draft, shard, packed.length === 0 ? [0, 0] : [packed.length, shard + 1], packed);
  }
  showBlocklist(writer, draft);
  routingChanged(writer);
}

/**
 * The blocklist as it is stored: an index and parts. A name has its shard, one of 256, by its hash (dns/name-hash.ts), and
 * the names of a shard, in the order of their hashes, are cut into parts at hashes too. A part's key is a hash of its content.
 * So two lists that differ in few names differ in few parts, on whichever node they are put.
 */
import { hash } from "node:crypto";
import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import { BLOCKLIST_PART_BYTES_MAX, BLOCKLIST_PARTS_MAX } from "./limits.ts";
import type { BlocklistBody, BlocklistPartBody, NaturalKey } from "./objects.ts";

/** The natural key of the one index. */
export const BLOCKLIST_NAME = "blocklist";
export const BLOCKLIST_KEY: NaturalKey = [BLOCKLIST_NAME];
export const BLOCKLIST_SHARDS = 256;

/** 128 bits of SHA-256 in base64url. */
const HASH_CHARACTERS = 22;
const HASH_BYTES = 16;

const EMPTY_SHARDS: readonly string[] = Array.from({ length: BLOCKLIST_SHARDS }, () => "");
/** What there is before anybody has put a list. */
export const EMPTY_BLOCKLIST: BlocklistBody = { name: BLOCKLIST_NAME, count: 0, shards: EMPTY_SHARDS };

/** The key of a part: names one behind the other in lower-case wire form, each with the root's zero byte. */
export function partHash(names: Uint8Array): string {
  return hash("sha256", names, "buffer").subarray(0, HASH_BYTES).toString("base64url");
}

/** A part of at most BLOCKLIST_PART_BYTES_MAX bytes of names. */
export function packPart(partKey: string, names: Uint8Array): BlocklistPartBody {
  const packed = deflateRawSync(names, { level: constants.Z_BEST_SPEED });
  return { hash: partKey, names: packed.toString("base64") };
}

/** In one piece, which is not joined from several. */
const INFLATING = { maxOutputLength: BLOCKLIST_PART_BYTES_MAX, chunkSize: BLOCKLIST_PART_BYTES_MAX + 64 };

/** The names of a part; undefined where they are not what its key says: another node may have sent anything. */
export function unpackPart(part: BlocklistPartBody): Uint8Array | undefined {
  let names: Uint8Array;
  try {
    names = inflateRawSync(Buffer.from(part.names, "base64"), INFLATING);
  } catch {
    return undefined;
  }
  return partHash(names) === part.hash ? names : undefined;
}

/** The keys of the parts of one shard, from its text in the index. */
export function partsOfShard(shard: string): readonly string[] {
  const keys: string[] = [];
  for (let at = 0; at < shard.length; at += HASH_CHARACTERS) keys.push(shard.slice(at, at + HASH_CHARACTERS));
  return keys;
}

/** The keys of all parts of a list, in order. */
export function partsOf({ shards }: BlocklistBody): readonly string[] {
  return shards.flatMap(partsOfShard);
}

/** Whether an index is one: another node may have sent anything. */
export function isBlocklist({ shards }: BlocklistBody): boolean {
  if (!Array.isArray(shards) || shards.length !== BLOCKLIST_SHARDS) return false;
  const characters = shards.reduce((sum, shard) => sum + shard.length, 0);
  return characters <= BLOCKLIST_PARTS_MAX * HASH_CHARACTERS && shards.every((shard) => /^([\w-]{22})*$/.test(shard));
}

/** What tells a list from any other. */
export function listHash({ shards }: BlocklistBody): string {
  return hash("sha256", shards.join(","));
}

/** Every key of a node comes from one secret: the cluster's key where it has one, else the node's own key file. */
import { createHmac, hkdfSync } from "node:crypto";
import type { HealthKey } from "../image/health.ts";
import type { SecretKey } from "../store/secret-check.ts";

const KEY_BYTES = 32;

export type NodeKeys = {
  /** Seals the secrets of the store. */
  readonly store: SecretKey;
  /** With a cluster key: what sealed them before the node had one. */
  readonly formerStore: Uint8Array | undefined;
  /** Signs the tokens of sessions. */
  readonly signing: Uint8Array;
  /** The DNS cookies' secrets come from it. */
  readonly cookies: Uint8Array;
  /** Health checks are called by it: see `healthKeyOf`. */
  readonly health: Uint8Array;
  /** Only with a cluster key: seals the packets of members, and is the root of what the streams between them are sealed with. */
  readonly cluster: { readonly membership: Uint8Array; readonly streams: Uint8Array } | undefined;
};

/** `clusterKey`: the text of `replication.encrypt_key`. Nodes of one cluster derive the same keys (RFC 5869). */
export function nodeKeys(fileKey: Uint8Array, clusterKey: string | undefined): NodeKeys {
  const root = clusterKey === undefined ? fileKey : derive(Buffer.from(clusterKey, "utf8"), "cluster key");
  return {
    store: { kind: clusterKey === undefined ? "file" : "cluster", key: root },
    formerStore: clusterKey === undefined ? undefined : fileKey,
    signing: derive(root, "signing"),
    cookies: derive(root, "cookies"),
    health: derive(root, "health checks"),
    cluster:
      clusterKey === undefined
        ? undefined
        : { membership: derive(root, "membership"), streams: derive(root, "replication") },
  };
}

function derive(secret: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "signpost node", purpose, KEY_BYTES));
}

/** What a probe is called between the threads and in the file of states: it tells nothing of the text, which holds secrets. */
export function healthKeyOf(key: Uint8Array, target: string): HealthKey {
  const text = createHmac("sha256", key).update(target).digest("hex").slice(0, 16);
  // A slot without a key is one that nobody has.
  return /^0+$/.test(text) ? "0000000000000001" : text;
}

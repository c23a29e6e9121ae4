/** Every key of a node comes from one secret: the cluster's key where it has one, else the node's own key file. */
import { hkdfSync } from "node:crypto";
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
};

/** `clusterKey`: the text of `replication.encrypt_key`. Nodes of one cluster derive the same keys (RFC 5869). */
export function nodeKeys(fileKey: Uint8Array, clusterKey: string | undefined): NodeKeys {
  const root = clusterKey === undefined ? fileKey : derive(Buffer.from(clusterKey, "utf8"), "cluster key");
  return {
    store: { kind: clusterKey === undefined ? "file" : "cluster", key: root },
    formerStore: clusterKey === undefined ? undefined : fileKey,
    signing: derive(root, "signing"),
    cookies: derive(root, "cookies"),
  };
}

function derive(secret: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "signpost node", purpose, KEY_BYTES));
}

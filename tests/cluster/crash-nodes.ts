/** The two nodes of the crash campaign. */
import type { SecretKey } from "../../src/store/secret-check.ts";

/** It is killed again and again. */
export const MORTAL = "mortal";
export const SURVIVOR = "survivor";
export const SECRET_KEY: SecretKey = { kind: "cluster", key: new Uint8Array(32).fill(5) };

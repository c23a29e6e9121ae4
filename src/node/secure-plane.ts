/** What `control` says of DNS over TLS and HTTPS: where the settings of the cluster want them. */
import { isDeepStrictEqual } from "node:util";
import { readConfig } from "../commands/config-documents.ts";
import { addressFromText } from "../listen/address.ts";
import type { SecureSettings } from "../listen/secure-switch.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import type { Store } from "../store/store.ts";
import { SECURE_SETTLES_MS } from "./limits.ts";
import type { SecureWish } from "./secure-thread.ts";

export type SecurePlane = {
  /** Tells where they are wanted, at once and whenever that has changed, until the store is closed. */
  readonly follow: (store: Pick<Store, "get" | "onChange">) => void;
  /** What was told by that number is so. */
  readonly settled: (number: number) => void;
  /** Resolves when what was told last is so, or could not be in time. */
  readonly inForce: () => Promise<void>;
};

export function createSecurePlane(tell: (wish: SecureWish) => void, waitMs = SECURE_SETTLES_MS): SecurePlane {
  let told: SecureWish | undefined;
  let settledNumber = 0;
  const waiting = new Map<() => void, number>();
  const settled = (number: number) => {
    settledNumber = Math.max(settledNumber, number);
    for (const [resolve, wanted] of waiting) if (wanted <= settledNumber) resolve();
  };
  return {
    follow: (store) => {
      const look = () => {
        const settings = secureSettings(readConfig(store, "transport").effective);
        if (isDeepStrictEqual(settings, told?.settings)) return;
        told = { settings, number: (told?.number ?? 0) + 1 };
        tell(told);
      };
      store.onChange(({ changes }) => {
        if (changes.some(({ kind, key }) => kind === "config" && key[0] === "transport")) look();
      });
      look();
    },
    settled,
    inForce: async () => {
      const wanted = told?.number ?? 0;
      if (wanted <= settledNumber) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(resolve, wanted);
      const timer = setTimeout(resolve, waitMs).unref();
      await promise;
      clearTimeout(timer);
      waiting.delete(resolve);
    },
  };
}

function secureSettings(settings: ConfigSettings<"transport">): SecureSettings {
  return {
    dot: settings.dot_enabled ? addressFromText(settings.dot_listen_addr) : undefined,
    doh: settings.doh_enabled ? addressFromText(settings.doh_listen_addr) : undefined,
  };
}

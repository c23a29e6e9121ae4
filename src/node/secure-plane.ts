/** What `control` says of DNS over TLS and HTTPS: where the settings of the cluster want them. */
import { isDeepStrictEqual } from "node:util";
import { readConfig } from "../commands/config-documents.ts";
import { addressFromText } from "../listen/address.ts";
import type { SecureSettings } from "../listen/secure-switch.ts";
import type { ConfigSettings } from "../model/config-schemas.ts";
import type { Store } from "../store/store.ts";

/** Calls `tell` at once and whenever the settings have changed, until the store is closed. */
export function followTransport(
  store: Pick<Store, "get" | "onChange">,
  tell: (settings: SecureSettings) => void,
): void {
  let told: SecureSettings | undefined;
  const look = () => {
    const settings = secureSettings(readConfig(store, "transport").effective);
    if (isDeepStrictEqual(settings, told)) return;
    told = settings;
    tell(settings);
  };
  store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "config" && key[0] === "transport")) look();
  });
  look();
}

function secureSettings(settings: ConfigSettings<"transport">): SecureSettings {
  return {
    dot: settings.dot_enabled ? addressFromText(settings.dot_listen_addr) : undefined,
    doh: settings.doh_enabled ? addressFromText(settings.doh_listen_addr) : undefined,
  };
}

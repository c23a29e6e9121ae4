/** Opens, moves and closes the listeners over TLS as the settings say, while they run. */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Identity } from "../base/tls.ts";
import { type Address, addressToText, sameAddress } from "./address.ts";
import { SECURE_KIND, type SecureKind, type SecureServer } from "./secure-server.ts";

/** Where the node is to listen; undefined: nowhere. */
export type SecureSettings = { readonly dot: Address | undefined; readonly doh: Address | undefined };

export type SecureSwitch = {
  /**
   * Resolves when it is so: the former addresses are given up, and the others bound, or found not to be had for now. They are
   * tried again all the same.
   */
  readonly apply: (settings: SecureSettings) => Promise<void>;
  /** Nothing listens before there is one. */
  readonly setIdentity: (identity: Identity) => void;
  /** Gives up all addresses, for good. */
  readonly close: () => void;
};

export type SecureSwitchOptions = {
  /** Rejects where the address cannot be bound. */
  readonly open: (kind: SecureKind, address: Address, identity: Identity) => Promise<SecureServer>;
  readonly retryMs: number;
  readonly log: Log;
};

const NAMES = { [SECURE_KIND.DOT]: "DNS over TLS", [SECURE_KIND.DOH]: "DNS over HTTPS" } as const;

export function createSecureSwitch(options: SecureSwitchOptions): SecureSwitch {
  let identity: Identity | undefined;
  const dot = createOne(SECURE_KIND.DOT, options, () => identity);
  const doh = createOne(SECURE_KIND.DOH, options, () => identity);
  return {
    apply: async (settings) => {
      await Promise.all([dot.want(settings.dot), doh.want(settings.doh)]);
    },
    setIdentity: (next) => {
      identity = next;
      dot.renew(next);
      doh.renew(next);
    },
    close: () => {
      void dot.want(undefined);
      void doh.want(undefined);
    },
  };
}

type One = {
  readonly want: (address: Address | undefined) => Promise<void>;
  readonly renew: (identity: Identity) => void;
};

function createOne(
  kind: SecureKind,
  { open, retryMs, log }: SecureSwitchOptions,
  identityOf: () => Identity | undefined,
): One {
  let wanted: Address | undefined;
  /** As it was wanted, with its server once that listens. */
  let current: { readonly asked: Address; readonly server: SecureServer } | undefined;
  let isOpening = false;
  let timer: NodeJS.Timeout | undefined;
  let fault = "";
  const waiting: (() => void)[] = [];
  const settled = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  const isCurrent = () => wanted !== undefined && current !== undefined && sameAddress(wanted, current.asked);

  const settle = async () => {
    clearTimeout(timer);
    if (isOpening) return;
    if (isCurrent()) return settled();
    if (current !== undefined) log("info", `${NAMES[kind]} no longer on ${addressToText(current.server.address)}`);
    current?.server.retire();
    current = undefined;
    const asked = wanted;
    const identity = identityOf();
    if (asked === undefined || identity === undefined) return settled();
    isOpening = true;
    try {
      const server = await open(kind, asked, identity);
      current = { asked, server };
      fault = "";
      log("info", `${NAMES[kind]} on ${addressToText(server.address)}`);
    } catch (error) {
      const text = errorText(error);
      if (text !== fault) log("error", `${NAMES[kind]} cannot listen on ${addressToText(asked)}: ${text}`);
      fault = text;
      timer = setTimeout(settleAgain, retryMs).unref();
    } finally {
      isOpening = false;
    }
    // The certificate and the wish may have changed meanwhile.
    const latest = identityOf();
    if (latest !== undefined && latest !== identity) current?.server.setIdentity(latest);
    if (wanted === undefined || !sameAddress(asked, wanted)) settleAgain();
    else settled();
  };
  const settleAgain = () => void settle();
  return {
    want: (address) => {
      wanted = address;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      settleAgain();
      return promise;
    },
    renew: (identity) => {
      current?.server.setIdentity(identity);
      settleAgain();
    },
  };
}

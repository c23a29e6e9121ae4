/** DNS NOTIFY of this node: for the writes that it took itself, by the settings of transfers. */
import { randomInt } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { Gauge, type Registry } from "prom-client";
import { ipFromText, ipToText } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { followConfig } from "../commands/config-documents.ts";
import { nameFromText } from "../dns/name.ts";
import type { TsigKey } from "../dns/tsig.ts";
import { parseEndpoint } from "../model/endpoint.ts";
import type { NaturalKey } from "../model/objects.ts";
import { soaRdata } from "../model/soa.ts";
import { signingKey } from "../model/tsig-key.ts";
import {
  createDnsNotify,
  type DnsNotify,
  type DnsNotifySettings,
  type NotifyTarget,
  type NotifyTimes,
} from "../notify/dns-notify.ts";
import { NOTIFY_CAUGHT_UP_MS } from "../notify/dns-notify-limits.ts";
import type { NotifySoa } from "../notify/dns-notify-message.ts";
import type { Store } from "../store/store.ts";
import { registerCounters } from "./counters.ts";

export type DnsNotifyPlaneOptions = {
  readonly store: Pick<Store, "get" | "list" | "serialOf" | "stateOf" | "onChange">;
  /** Resolves when this node answers what the store has. */
  readonly published: () => Promise<void>;
  /** Resolves when this node has what others wrote while it was away, or after the time. */
  readonly caughtUp?: ((timeoutMs: number) => Promise<void>) | undefined;
  /** Whether keys of HMAC-MD5 sign here. */
  readonly isMd5Enabled: boolean;
  /** Somebody is about to be told of the zone. */
  readonly onAnnounced?: (zone: string) => void;
  readonly registry: Registry;
  readonly log: Log;
};

const DNS_PORT = 53;
/** Zones of one page of the store. */
const ZONES_PAGE = 100;

/** Sends nothing and opens nothing before there is somebody to tell. */
export function openDnsNotify(options: DnsNotifyPlaneOptions): Disposable {
  const { store, published, isMd5Enabled, onAnnounced = () => {}, registry, log } = options;
  const reading = followConfig(store, "axfr");
  const sockets = createNotifySockets((bytes, address, port) => notify.heard(bytes, address, port), log);
  const keyOf = (name: string) => {
    const body = store.get("tsig-key", [name])?.body;
    return body === undefined ? undefined : signingKey(body, isMd5Enabled);
  };
  const notify = createDnsNotify({
    settings: () => settingsOf(reading().effective, keyOf),
    soaOf: (zone) => soaOf(store, zone),
    onAnnounced,
    published,
    send: sockets.send,
    resolveHost: createHostLookup(),
    times: TIMES,
    randomId: () => randomInt(0x1_0000),
    log,
  });
  registerDnsNotify(notify, registry);
  let hasEnded = false;
  const announceAll = async () => {
    await options.caughtUp?.(NOTIFY_CAUGHT_UP_MS);
    if (!hasEnded) await notify.announceAll(zoneNames(store));
  };
  void announceAll();
  const end = store.onChange(({ origin, zones }) => {
    // What came from another node is announced by that one.
    if (origin !== "local") return;
    for (const zone of zones) if (store.stateOf(zone) === "active") notify.changed(zone);
  });
  return {
    [Symbol.dispose]: () => {
      hasEnded = true;
      end();
      notify[Symbol.dispose]();
      sockets[Symbol.dispose]();
    },
  };
}

const TIMES: NotifyTimes = {
  now: () => performance.now(),
  wallMs: Date.now,
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

type AxfrSettings = ReturnType<ReturnType<typeof followConfig<"axfr">>>["effective"];

/** Where zones are not transferred, nobody is told of them. */
function settingsOf(settings: AxfrSettings, keyOf: (name: string) => TsigKey | undefined): DnsNotifySettings {
  const { enabled, notify_targets, notify_tsig_key_name: keyName, notify_debounce_seconds } = settings;
  return {
    targets: enabled ? notify_targets.flatMap(targetOf) : [],
    debounceMs: notify_debounce_seconds * 1_000,
    key: keyName === null ? "none" : (keyOf(keyName.toLowerCase()) ?? "missing"),
  };
}

function targetOf(text: string): readonly NotifyTarget[] {
  const endpoint = parseEndpoint(text);
  return endpoint === undefined ? [] : [{ host: endpoint.host, port: endpoint.port ?? DNS_PORT }];
}

function soaOf(store: DnsNotifyPlaneOptions["store"], zone: string): NotifySoa | undefined {
  const body = store.get("zone", [zone])?.body;
  const serial = store.serialOf(zone);
  const name = nameFromText(zone);
  if (body === undefined || serial === undefined || store.stateOf(zone) !== "active" || name.kind === "error") {
    return undefined;
  }
  return { zone: name.name, ttl: body.default_ttl, rdata: soaRdata(body.soa, serial) };
}

/** Pages of the store, read as they are asked for: what is added meanwhile may come too, and does no harm. */
function* zoneNames(store: Pick<Store, "list">): Generator<string> {
  let after: NaturalKey | undefined;
  do {
    const page = store.list("zone", { limit: ZONES_PAGE, ...(after !== undefined && { after }) });
    for (const { body } of page) yield body.name;
    after = page.at(-1)?.key;
  } while (after !== undefined);
}

/** The system's resolver, asked once for all who wait for the same host: a call cannot be taken back. */
function createHostLookup(): (host: string) => Promise<readonly string[]> {
  const running = new Map<string, Promise<readonly string[]>>();
  return (host) => {
    const address = ipFromText(host);
    if (address !== undefined) return Promise.resolve([ipToText(address)]);
    const known = running.get(host);
    if (known !== undefined) return known;
    const asking = lookup(host, { all: true })
      .then((found) => found.flatMap(({ address: text }) => canonicalAddress(text) ?? []))
      .finally(() => running.delete(host));
    running.set(host, asking);
    return asking;
  };
}

function canonicalAddress(text: string): string | undefined {
  const address = ipFromText(text);
  return address === undefined ? undefined : ipToText(address);
}

type NotifySockets = Disposable & {
  readonly send: (bytes: Uint8Array, address: string, port: number) => void;
};

/** One socket a family, opened with the first datagram at a port that the system draws. */
function createNotifySockets(
  onDatagram: (bytes: Uint8Array, address: string, port: number) => void,
  log: Log,
): NotifySockets {
  const open = new Map<"udp4" | "udp6", Socket>();
  const socketOf = (family: "udp4" | "udp6"): Socket => {
    const known = open.get(family);
    if (known !== undefined) return known;
    const socket = createSocket({ type: family, ipv6Only: family === "udp6" });
    socket.unref();
    socket.on("message", (bytes, { address, port }) => onDatagram(bytes, canonicalAddress(address) ?? address, port));
    socket.on("error", (error) => {
      log("warn", `the socket of NOTIFY failed: ${error.message}`);
      open.delete(family);
      socket.close();
    });
    open.set(family, socket);
    return socket;
  };
  return {
    send: (bytes, address, port) => {
      // Lost as any datagram may be: the next attempt follows.
      socketOf(address.includes(":") ? "udp6" : "udp4").send(bytes, port, address, () => {});
    },
    [Symbol.dispose]: () => {
      for (const socket of open.values()) socket.close();
      open.clear();
    },
  };
}

function registerDnsNotify({ stats }: DnsNotify, registry: Registry): void {
  registerCounters(registry, [
    ["svc_dns_notify_sent_total", "NOTIFY messages sent to secondaries, repeats included.", () => stats().sent],
    [
      "svc_dns_notify_answered_total",
      "Changes of a zone that a secondary has confirmed to know of.",
      () => stats().answered,
    ],
    [
      "svc_dns_notify_failed_total",
      "Changes of a zone that a secondary was not told of, or refused.",
      () => stats().failed,
    ],
  ]);
  new Gauge({
    name: "svc_dns_notify_pending",
    help: "Changes of a zone that a secondary has not confirmed yet.",
    registers: [registry],
    collect() {
      this.set(stats().pending);
    },
  });
}

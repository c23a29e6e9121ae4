/**
 * The types that settings have: what a text becomes, and what is said of a text that is none of them. A detail follows
 * the setting's name and makes a sentence with it.
 */
import { type Cidr, cidrFromText, ipFromText } from "../base/ip.ts";
import { nearestWord } from "../base/nearest.ts";
import { type Address, addressFromText, addressToText } from "../listen/address.ts";

export type Reading<Value> =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "fault"; readonly detail: string };

export type SettingType<Value> = {
  /** What a configuration file holds for it. */
  readonly shape: "text" | "number" | "boolean" | "list";
  /** `texts`: the items of a list, or the one text of anything else. */
  readonly read: (texts: readonly string[]) => Reading<Value>;
};

/** What the table of settings says of one. */
export type SettingRow = {
  readonly type: SettingType<unknown>;
  /** The default, as an environment variable would have it. */
  readonly fallback: string;
  readonly help: string;
  /** Never shown; a variable with `_FILE` behind its name may name a file that holds it. */
  readonly isSecret?: true;
  /** Checked now; nothing acts on it yet. */
  readonly isUnused?: true;
};

/** The items of a default or of an environment variable. */
export function textsOf(text: string, { shape }: Pick<SettingType<unknown>, "shape">): readonly string[] {
  if (shape !== "list") return [text];
  return text === "" ? [] : text.split(",").map((item) => item.trim());
}

const LONGEST_TEXT = 4_096;
const LONGEST_LIST = 1_000;

function value<Value>(read: Value): Reading<Value> {
  return { kind: "value", value: read };
}

function fault(detail: string): { readonly kind: "fault"; readonly detail: string } {
  return { kind: "fault", detail };
}

function single<Value>(shape: "text" | "number" | "boolean", read: (text: string) => Reading<Value>) {
  return { shape, read: ([text = ""]: readonly string[]) => read(text) } satisfies SettingType<Value>;
}

/** Nothing, where there is no text. */
export function optional<Value>(type: SettingType<Value>): SettingType<Value | undefined> {
  return {
    shape: type.shape,
    read: (texts) => (texts.every((text) => text === "") ? value(undefined) : type.read(texts)),
  };
}

/** Any text but none, in one line. */
export const TEXT = single("text", (text) => {
  if (text === "") return fault("is empty");
  if (text.length > LONGEST_TEXT) return fault(`is longer than ${LONGEST_TEXT} characters`);
  if (/\p{Cc}/u.test(text)) return fault("holds a control character");
  return value(text);
});

/** An identifier that can stand in names, paths and keys: letters, digits, dot, hyphen and underscore. */
export function identifier(mostBytes: number): SettingType<string> {
  return single("text", (text) => {
    if (Buffer.byteLength(text) > mostBytes) return fault(`is longer than ${mostBytes} bytes`);
    if (/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text)) return value(text);
    return fault(
      `is ${JSON.stringify(text)}; it takes letters, digits, ".", "-" and "_", beginning with a letter or digit`,
    );
  });
}

/** A text that no message repeats. Lengths count characters. */
export function secret(least: number, most: number): SettingType<string> {
  return single("text", (text) => {
    const { length } = [...text];
    if (length < least) return fault(`is shorter than ${least} characters`);
    if (length > most) return fault(`is longer than ${most} characters`);
    return value(text);
  });
}

export function wholeNumber(least: number, most: number): SettingType<number> {
  return single("number", (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return value(number);
    return fault(`is ${JSON.stringify(text)}; it takes a whole number from ${least} to ${most}`);
  });
}

export const SWITCH: SettingType<boolean> = single("boolean", (text) =>
  text === "true" || text === "false"
    ? value(text === "true")
    : fault(`is ${JSON.stringify(text)}; it takes true or false`),
);

export function oneOf<Word extends string>(words: readonly Word[]): SettingType<Word> {
  return single("text", (text) => {
    const word = words.find((candidate) => candidate === text);
    return word === undefined ? fault(`is ${JSON.stringify(text)}; it takes one of ${words.join(", ")}`) : value(word);
  });
}

/** Items of `type`, none twice by `keyOf`. */
export function listOf<Value>(type: SettingType<Value>, keyOf: (item: Value) => string): SettingType<readonly Value[]> {
  return {
    shape: "list",
    read: (texts) => {
      if (texts.length > LONGEST_LIST) return fault(`has more than ${LONGEST_LIST} items`);
      const items: Value[] = [];
      const keys = new Set<string>();
      for (const text of texts) {
        const item = type.read([text]);
        if (item.kind === "fault") return item;
        const key = keyOf(item.value);
        if (keys.has(key) && !key.endsWith(":0")) return fault(`names ${key} twice`);
        keys.add(key);
        items.push(item.value);
      }
      return value(items);
    },
  };
}

export const ADDRESS: SettingType<Address> = single("text", (text) => {
  const address = addressFromText(text);
  if (address !== undefined) return value(address);
  return fault(`has ${JSON.stringify(text)}, which is no address and port such as 127.0.0.1:5353 or [::1]:5353`);
});

/** At least one address; port 0 may stand several times. */
export const ADDRESSES: SettingType<readonly Address[]> = {
  shape: "list",
  read: (texts) => (texts.length === 0 ? fault("is empty") : listOf(ADDRESS, addressToText).read(texts)),
};

const HOST_LABEL = /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;

function isHost(text: string): boolean {
  if (ipFromText(text) !== undefined) return true;
  const labels = text.replace(/\.$/, "").split(".");
  return text.length <= 253 && labels.every((label) => HOST_LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? "");
}

/** A host that is dialled, an address or a name, with its port. */
export const PEER: SettingType<string> = single("text", (text) => {
  const parts = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts !== null && port >= 1 && port <= 65_535 && isHost(parts[1] ?? parts[2] ?? "")) return value(text);
  return fault(
    `has ${JSON.stringify(text)}, which is no host and port such as 192.0.2.1:7946 or node.corp.example:7946`,
  );
});
export const PEERS = listOf(PEER, (peer) => peer);

/** A network whose address has no bit behind the prefix; a bare address is a network of its own. */
const NETWORK: SettingType<Cidr> = single("text", (text) => {
  const cidr = cidrFromText(text);
  if (cidr === undefined) {
    return fault(`has ${JSON.stringify(text)}, which is no address or network such as 192.0.2.0/24`);
  }
  return cidr.hostBitsSet
    ? fault(`has ${JSON.stringify(text)}, whose address has bits behind the prefix`)
    : value(cidr);
});
export const NETWORKS = listOf(
  NETWORK,
  ({ address, prefixBits }) => `${Buffer.from(address).toString("hex")}/${prefixBits}`,
);

/** The origin of a page, as browsers send it (RFC 6454 section 6.2). */
const ORIGIN: SettingType<string> = single("text", (text) => {
  const url = URL.parse(text);
  if (url !== null && url.origin === text && /^https?:$/.test(url.protocol)) return value(text);
  return fault(`has ${JSON.stringify(text)}, which is no origin such as https://console.corp.example`);
});
export const ORIGINS = listOf(ORIGIN, (origin) => origin);

export function words<Word extends string>(known: readonly Word[]): SettingType<readonly Word[]> {
  const word: SettingType<Word> = single("text", (text) => {
    const found = known.find((candidate) => candidate === text);
    return found === undefined
      ? fault(`has ${JSON.stringify(text)}; did you mean ${nearestWord(text, known)}?`)
      : value(found);
  });
  return listOf(word, (one) => one);
}

const LOOPBACK_HOST = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** An URL that is posted to: HTTPS, or HTTP to this very machine. A fault does not repeat it: it may hold a secret. */
export const WEBHOOK_URL: SettingType<string> = single("text", (text) => {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return fault("is no https:// URL");
  if (url.protocol === "http:" && !LOOPBACK_HOST.test(url.hostname)) {
    return fault("must begin with https://; plain http:// is taken for loopback addresses only");
  }
  if (url.username !== "" || url.password !== "") return fault("holds a user name or password");
  return value(url.href);
});

export const TOPIC_URL: SettingType<string> = single("text", (text) => {
  const url = URL.parse(text);
  if (url === null || url.protocol !== "https:") return fault("is no https:// URL");
  if (url.username !== "" || url.password !== "") return fault("holds a user name or password");
  if (url.search !== "" || text.includes("?")) return fault("has a query string; the endpoint stands without one");
  return value(url.href);
});

/** Scheme, host and port of a service of the platform, which speaks plain HTTP on an address that never leaves the host. */
export const METADATA_URL: SettingType<string> = single("text", (text) => {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return fault("is no http:// or https:// URL");
  if (url.username !== "" || url.password !== "") return fault("holds a user name or password");
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") return fault("goes on behind the host and port");
  return value(url.origin);
});

const CRON_FIELD = /^(\*|\d{1,2}(-\d{1,2})?)(\/\d{1,2})?(,(\*|\d{1,2}(-\d{1,2})?)(\/\d{1,2})?)*$/;
const CRON_BOUNDS = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;

/** Five cron fields (minute, hour, day of month, month, day of week; UTC) or @hourly, @daily, @weekly. */
export const SCHEDULE: SettingType<string> = single("text", (text) => {
  if (/^@(hourly|daily|weekly)$/.test(text)) return value(text);
  const fields = text.split(/\s+/);
  const isUsable =
    fields.length === CRON_BOUNDS.length &&
    CRON_BOUNDS.every(([least, most], index) => {
      const field = fields[index] ?? "";
      const numbers = field.replaceAll(/\/\d+/g, "").match(/\d+/g) ?? [];
      return CRON_FIELD.test(field) && numbers.every((number) => Number(number) >= least && Number(number) <= most);
    });
  if (isUsable) return value(text);
  return fault(
    `is ${JSON.stringify(text)}; it takes five cron fields such as "30 2 * * *", or @hourly, @daily, @weekly`,
  );
});

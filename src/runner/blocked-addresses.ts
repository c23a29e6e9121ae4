/**
 * Keeps scripts away from where a cloud platform hands out secrets to whoever asks from this machine. The rules are of the
 * kernel's routing policy (ip-rule(8)), for the one user that scripts run as: whatever socket that user makes, a packet to
 * one of these addresses finds no route, and the caller gets EACCES at once. They belong to the host and stay when the
 * runner ends, so that two runners do not take them from each other; a user of scripts needs nothing there.
 */
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { errorText } from "../base/errors.ts";
import { cidrFromText, ipFromText } from "../base/ip.ts";
import { runTool } from "./tool.ts";

export type Blocked = {
  readonly family: "ipv4" | "ipv6";
  /** address/prefix */
  readonly network: string;
  /** Absent: everything. */
  readonly ports?: readonly number[];
};

/**
 * Link-local addresses, where all platforms have their instance metadata; its IPv6 address at one of them; and the wire
 * server of another, which is also a resolver and so is closed on the ports of secrets only. An IPv4-mapped IPv6 address is
 * routed as the IPv4 address that it holds.
 */
export const BLOCKED: readonly Blocked[] = [
  { family: "ipv4", network: "169.254.0.0/16" },
  { family: "ipv4", network: "168.63.129.16/32", ports: [80, 32526] },
  { family: "ipv6", network: "fe80::/10" },
  { family: "ipv6", network: "fd00:ec2::254/128" },
];

/** Before every table but that of the host's own addresses. */
const PREFERENCE = 1;
/** Of the origin of a rule, as `ip rule` shows it (rtnetlink(7)): it tells whose these are. */
const ORIGIN = 83;

export type Rule = Pick<Blocked, "family" | "network"> & { readonly protocol?: "tcp" | "udp"; readonly port?: number };

export const BLOCKING_RULES: readonly Rule[] = BLOCKED.flatMap(({ family, network, ports }) =>
  ports === undefined
    ? [{ family, network }]
    : ports.flatMap((port) => (["tcp", "udp"] as const).map((protocol) => ({ family, network, protocol, port }))),
);

function familyFlag({ family }: Pick<Rule, "family">): string {
  return family === "ipv4" ? "-4" : "-6";
}

/** Arguments of `ip` that add a rule. */
export function addArguments(rule: Rule, userId: number): string[] {
  return [
    ...[familyFlag(rule), "rule", "add", "pref", `${PREFERENCE}`, "uidrange", `${userId}-${userId}`],
    ...["to", rule.network],
    ...(rule.protocol === undefined ? [] : ["ipproto", rule.protocol, "dport", `${rule.port}`]),
    ...["protocol", `${ORIGIN}`, "prohibit"],
  ];
}

/** One rule as `ip -json rule show` tells it: a field that narrows a rule and is not looked at here would weaken it. */
function isShown(shown: unknown, rule: Rule, userId: number): boolean {
  if (typeof shown !== "object" || shown === null) return false;
  const { protocol: _origin, dstlen, ...fields }: Readonly<Record<string, unknown>> = { ...shown };
  const [address, prefix] = rule.network.split("/");
  const isHost = prefix === (rule.family === "ipv4" ? "32" : "128");
  if (dstlen !== undefined ? String(dstlen) !== prefix : !isHost) return false;
  const expected: Readonly<Record<string, unknown>> = {
    priority: PREFERENCE,
    src: "all",
    dst: address,
    uid_start: userId,
    uid_end: userId,
    ...(rule.protocol === undefined ? {} : { ipproto: rule.protocol, dport: rule.port }),
    action: "prohibit",
  };
  const names = Object.keys(fields);
  return names.length === Object.keys(expected).length && names.every((name) => fields[name] === expected[name]);
}

/** The rules that a listing of `ip -json rule show` lacks. */
export function missingRules(rules: readonly Rule[], shown: readonly unknown[], userId: number): Rule[] {
  return rules.filter((rule) => !shown.some((one) => isShown(one, rule, userId)));
}

async function missingNow(ip: string, families: readonly Rule["family"][], userId: number): Promise<Rule[]> {
  const listings = families.map(async (family) => {
    const text = await runTool(ip, ["-json", familyFlag({ family }), "rule", "show"]);
    const shown: unknown = JSON.parse(text === "" ? "[]" : text);
    const rules = BLOCKING_RULES.filter((rule) => rule.family === family);
    return missingRules(rules, Array.isArray(shown) ? shown : [], userId);
  });
  return (await Promise.all(listings)).flat();
}

/** An address of this machine that lies in a blocked network; the kernel routes to its own addresses before any rule. */
export function ownBlockedAddress(addresses: readonly string[]): string | undefined {
  // fe80::/10 is left out: every interface has one of its own there, behind which there is this machine and no other.
  const networks = BLOCKED.filter(({ network }) => network !== "fe80::/10").flatMap(({ network }) => {
    const cidr = cidrFromText(network);
    return cidr === undefined ? [] : [cidr];
  });
  return addresses.find((text) => {
    const bytes = ipFromText(text.replace(/%.*$/, ""));
    return bytes !== undefined && networks.some((network) => isWithin(bytes, network.address, network.prefixBits));
  });
}

function isWithin(address: Uint8Array, network: Uint8Array, prefixBits: number): boolean {
  if (address.length !== network.length) return false;
  return address.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefixBits - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (byte & mask) === ((network[index] ?? 0) & mask);
  });
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}

/**
 * Sees to it that every rule is in force, and adds what is missing. Undefined when all is well, else what is wrong: then no
 * script may run.
 */
export async function blockAddresses(ip: string, userId: number): Promise<string | undefined> {
  const own = ownBlockedAddress(ownAddresses());
  if (own !== undefined) {
    return `${own}, which scripts must not reach, is an address of this machine: it cannot be kept from them`;
  }
  const families: readonly Rule["family"][] = existsSync("/proc/net/if_inet6") ? ["ipv4", "ipv6"] : ["ipv4"];
  try {
    for (const rule of await missingNow(ip, families, userId)) {
      // Another runner may add the same at the same moment: what counts is the look behind it.
      await runTool(ip, addArguments(rule, userId)).catch(() => undefined);
    }
    const [missing] = await missingNow(ip, families, userId);
    if (missing === undefined) return undefined;
    // Once more for its words.
    const fault = await runTool(ip, addArguments(missing, userId)).then(() => undefined, errorText);
    return fault === undefined ? undefined : `${missing.network} cannot be kept from scripts: ip rule: ${fault}`;
  } catch (error) {
    return `the rules that keep addresses from scripts cannot be read: ${errorText(error)}`;
  }
}

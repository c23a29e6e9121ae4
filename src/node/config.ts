/** The settings of a node, read from SVC_ environment variables over embedded defaults. */
import { OperatorError } from "../base/errors.ts";
import { LOG_LEVELS, type LogLevel } from "../base/log.ts";
import { nearestWord } from "../base/nearest.ts";
import { MAX_THREADS } from "../image/shared.ts";
import { type Address, addressFromText, addressToText } from "../listen/address.ts";
import { UDP_SLOT_BYTES } from "../listen/limits.ts";

export const UDP_MODES = ["auto", "batch", "dgram"] as const;
export const LOG_FORMATS = ["auto", "text", "json"] as const;

export type Config = {
  /** `id`: answered to `id.server` CH TXT and NSID; undefined where the operator named none. */
  readonly node: { readonly id: string | undefined; readonly dataDir: string };
  readonly dns: {
    readonly listen: readonly Address[];
    /** 0: one a core. */
    readonly threads: number;
    /** The largest UDP answer in bytes, whatever the client offers. */
    readonly maxUdpSize: number;
    readonly udp: (typeof UDP_MODES)[number];
  };
  readonly management: { readonly listen: Address };
  readonly log: { readonly level: LogLevel; readonly format: (typeof LOG_FORMATS)[number] };
};

/** Every setting with its default and what it means, in the order of the help text. */
export const SETTINGS = {
  "node.id": { fallback: "", help: "name answered to id.server; empty: such questions are refused" },
  "node.data_dir": { fallback: "./data", help: "directory of this node's data, made where it is missing" },
  "dns.listen": { fallback: "127.0.0.1:5353", help: "addresses served over UDP and TCP, separated by commas" },
  "dns.threads": { fallback: "0", help: "threads that answer UDP; 0: one a core" },
  "dns.max_udp_size": { fallback: "1232", help: "largest UDP answer in bytes, 512 to 4096" },
  "dns.udp": { fallback: "auto", help: "batch (Linux system calls), dgram (Node's sockets) or auto" },
  "management.listen": { fallback: "127.0.0.1:8080", help: "address of /healthz, /readyz and /metrics" },
  "log.level": { fallback: "info", help: "debug, info, warn or error" },
  "log.format": { fallback: "auto", help: "text, json or auto: text on a terminal, else json" },
} as const;

type Setting = keyof typeof SETTINGS;

/** `dns.max_udp_size` is SVC_DNS_MAX_UDP_SIZE. */
export function environmentName(setting: string): string {
  return `SVC_${setting.replaceAll(".", "_").toUpperCase()}`;
}

/** One thread is kept for TCP. */
const MOST_ANSWER_THREADS = MAX_THREADS - 1;
const LEAST_UDP_SIZE = 512;
/** It goes into NSID options and TXT answers beside everything else that an answer has. */
const LONGEST_NODE_ID_BYTES = 63;

/** Reads the settings. Throws OperatorError for an unknown name or an unusable value. */
export function configFromEnvironment(environment: NodeJS.ProcessEnv): Config {
  refuseUnknownNames(environment);
  const read = <Value>(setting: Setting, parse: (text: string, name: string) => Value): Value => {
    const name = environmentName(setting);
    return parse((environment[name] ?? SETTINGS[setting].fallback).trim(), name);
  };
  return {
    node: {
      id: read("node.id", parseNodeId),
      dataDir: read("node.data_dir", parseText),
    },
    dns: {
      listen: read("dns.listen", parseAddresses),
      threads: read("dns.threads", wholeNumber(0, MOST_ANSWER_THREADS)),
      maxUdpSize: read("dns.max_udp_size", wholeNumber(LEAST_UDP_SIZE, UDP_SLOT_BYTES)),
      udp: read("dns.udp", oneOf(UDP_MODES)),
    },
    management: { listen: read("management.listen", parseAddress) },
    log: { level: read("log.level", oneOf(LOG_LEVELS)), format: read("log.format", oneOf(LOG_FORMATS)) },
  };
}

/** A mistyped name in a section that exists would otherwise leave its setting at the default without a word. */
function refuseUnknownNames(environment: NodeJS.ProcessEnv): void {
  const known = Object.keys(SETTINGS).map(environmentName);
  const sections = [...new Set(Object.keys(SETTINGS).map((setting) => `SVC_${setting.split(".")[0]?.toUpperCase()}_`))];
  for (const name of Object.keys(environment)) {
    if (known.includes(name) || !sections.some((section) => name.startsWith(section))) continue;
    throw new OperatorError(`unknown environment variable ${name}; did you mean ${nearestWord(name, known)}?`);
  }
}

function parseText(text: string, name: string): string {
  if (text === "") throw new OperatorError(`${name} is empty`);
  return text;
}

function parseNodeId(text: string, name: string): string | undefined {
  if (Buffer.byteLength(text) > LONGEST_NODE_ID_BYTES) {
    throw new OperatorError(`${name} is longer than ${LONGEST_NODE_ID_BYTES} bytes`);
  }
  return text === "" ? undefined : text;
}

function wholeNumber(least: number, most: number): (text: string, name: string) => number {
  return (text, name) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new OperatorError(`${name} is "${text}"; it takes a whole number from ${least} to ${most}`);
  };
}

function oneOf<Word extends string>(words: readonly Word[]): (text: string, name: string) => Word {
  return (text, name) => {
    const word = words.find((candidate) => candidate === text);
    if (word !== undefined) return word;
    throw new OperatorError(`${name} is "${text}"; it takes one of ${words.join(", ")}`);
  };
}

function parseAddress(text: string, name: string): Address {
  const address = addressFromText(text);
  if (address !== undefined) return address;
  throw new OperatorError(`${name}: "${text}" is no address and port, for example 127.0.0.1:5353 or [::1]:5353`);
}

function parseAddresses(text: string, name: string): readonly Address[] {
  const addresses = text.split(",").map((part) => parseAddress(part.trim(), name));
  const texts = addresses.map(addressToText);
  const twice = texts.find((one, index) => texts.indexOf(one) !== index && !one.endsWith(":0"));
  if (twice !== undefined) throw new OperatorError(`${name} names ${twice} twice`);
  return addresses;
}

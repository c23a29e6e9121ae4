import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Fault } from "./layers.ts";

type TextRule = {
  readonly rule: string;
  readonly applies: (path: string) => boolean;
  readonly pattern: RegExp;
  readonly detail: string;
};

const NOT_OURS = new Set(["node_modules", ".git", "data", "coverage", "dist"]);
const BINARY = /\.(png|jpg|ico|woff2|zip|gz|mmdb)$/;

const isCode = (path: string) => /\.(ts|mjs)$/.test(path);
const isTest = (path: string) => path.endsWith(".test.ts");

// Patterns are written so that they do not match their own source.
const RULES: readonly TextRule[] = [
  {
    rule: "machine-path",
    applies: () => true,
    pattern: /(?:^|[\s"'`(=])\/(?:work|root|home\/[a-z]+)\/[\w.]|\.\.\/shared\/(?:spec|design|style|cluster)[.]md/m,
    detail: "names a path of one machine",
  },
  {
    rule: "registry-host",
    applies: () => true,
    pattern: /\bregistry\.[a-z]+js\.|\b(?:deb|security|snapshot)\.debian\.|\bnpm\.pkg\.|\bproxy\.golang\./,
    detail: "names a registry host; clients find theirs in the machine's configuration",
  },
  {
    rule: "unfinished",
    applies: isCode,
    pattern: /\b(?:TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b/,
    detail: "marks unfinished work; finish it or open an issue",
  },
  {
    rule: "banner",
    applies: isCode,
    pattern: /^\s*(?:\/\/|\/?\*)\s*[-=#*~]{4,}/m,
    detail: "draws a banner; a file that needs sections needs splitting",
  },
  {
    rule: "fixed-sleep",
    applies: isTest,
    pattern: /setTimeout\((?:resolve|done|next|r)\b|node:timers\/promises/,
    detail: "sleeps for a fixed time; wait for a condition with waitFor",
  },
];

function* filesBelow(root: string, folder: string): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    if (NOT_OURS.has(entry.name)) continue;
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* filesBelow(root, path);
    else if (entry.isFile() && !BINARY.test(entry.name)) yield path;
  }
}

function nameFault(path: string): Fault | undefined {
  const isKebab = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+)+$/.test(basename(path));
  const inTestFolder = path.split("/").slice(0, -1).includes("test") && path.startsWith("tests/");
  // Node takes every file below a folder of that name for a test.
  if (inTestFolder) return { path, line: 1, rule: "name", detail: "lies in a folder named test" };
  return isCode(path) && !isKebab ? { path, line: 1, rule: "name", detail: "is not in kebab-case" } : undefined;
}

/** What the text of the repository's files, and their names, break of the house rules. */
export function textFaults(root: string): Fault[] {
  const faults: Fault[] = [];
  for (const path of filesBelow(root, "")) {
    const named = nameFault(path);
    if (named !== undefined) faults.push(named);
    const text = readFileSync(join(root, path), "utf8");
    for (const { rule, applies, pattern, detail } of RULES) {
      const match = applies(path) ? pattern.exec(text) : null;
      if (match === null) continue;
      const line = text.slice(0, match.index + match[0].search(/\S/)).split("\n").length;
      faults.push({ path, line, rule, detail: `${detail}: ${match[0].trim()}` });
    }
  }
  return faults;
}

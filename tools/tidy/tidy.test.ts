import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const tidy = fileURLToPath(new URL("../tidy.ts", import.meta.url));
const TSCONFIG = '{"compilerOptions":{"module":"nodenext","allowImportingTsExtensions":true,"noEmit":true}}';

/** Runs tidy on a tree of files and gives the faults that it prints; the compiler may say other things. */
function runTidy(files: Readonly<Record<string, string>>): { status: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), "signpost-tidy-"));
  try {
    for (const [path, text] of Object.entries({ "tsconfig.json": TSCONFIG, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const { status, stderr } = spawnSync(process.execPath, [tidy, root], { encoding: "utf8" });
    return { status, lines: stderr.split("\n").filter((line) => /^[^\s:]+:\d+: /.test(line)) };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** One planted fault a row: the files, and the start of the one line that must be reported. */
const planted: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  [
    "an import against the layers",
    { "src/dns/a.ts": 'import "../image/b.ts";', "src/image/b.ts": "export const b = 1;" },
    "src/dns/a.ts:1: layers: imports src/image/b.ts",
  ],
  [
    "a type-only import against the layers",
    {
      "src/dns/a.ts": 'import type { B } from "../image/b.ts"; export type A = B;',
      "src/image/b.ts": "export type B = 1;",
    },
    "src/dns/a.ts:1: layers:",
  ],
  [
    "a thread entry against the layers",
    { "src/dns/a.ts": 'new URL("../image/b.ts", import.meta.url);', "src/image/b.ts": "export const b = 1;" },
    "src/dns/a.ts:1: layers:",
  ],
  [
    "an import of the composition root",
    { "src/listen/a.ts": 'await import("../node/b.ts");', "src/node/b.ts": "export const b = 1;" },
    "src/listen/a.ts:1: layers:",
  ],
  [
    "an import of a test",
    { "src/dns/a.ts": 'import "./b.test.ts";', "src/dns/b.test.ts": "export const b = 1;" },
    "src/dns/a.ts:1: layers: imports the test",
  ],
  [
    "a server file that imports tests",
    { "src/dns/a.ts": 'import "../../tests/b.ts";', "tests/b.ts": "export const b = 1;" },
    "src/dns/a.ts:1: layers:",
  ],
  ["an unknown folder", { "src/util/a.ts": "export const a = 1;" }, "src/util/a.ts:1: layers: src/util is not"],
  ["an import from outside", { "src/a.ts": 'import "../../b.ts";' }, "src/a.ts:1: outside:"],
  [
    "a cycle",
    { "src/dns/a.ts": 'import "./b.ts";', "src/dns/b.ts": 'import "./c.ts";', "src/dns/c.ts": 'import "./a.ts";' },
    "src/dns/c.ts:1: cycle: src/dns/a.ts -> src/dns/b.ts -> src/dns/c.ts -> src/dns/a.ts",
  ],
  [
    "a long file",
    { "src/a.ts": "export const a = 1;\n".replace("1", `[\n${"1,\n".repeat(500)}]`) },
    "src/a.ts:501: file-length:",
  ],
  [
    "a long function",
    { "src/a.ts": `export function a() {\n${"a;\n".repeat(80)}}\n` },
    "src/a.ts:1: function-length: 82",
  ],
  ["a default export", { "src/a.ts": "export default 1;" }, "src/a.ts:1: default-export:"],
  ["a default function", { "src/a.ts": "export default function a() {}" }, "src/a.ts:1: default-export:"],
  ["printing in the server", { "src/dns/a.ts": "console.log(1);" }, "src/dns/a.ts:1: banned-call: console.log"],
  [
    "a store transaction",
    { "src/store/a.ts": "db.transactionSync(f);" },
    "src/store/a.ts:1: banned-call: db.transactionSync",
  ],
  ["a skipped test", { "src/a.test.ts": 'test.skip("a");' }, "src/a.test.ts:1: not-run: test.skip"],
  ["an only test", { "src/a.test.ts": 'test("a", { only: true });' }, "src/a.test.ts:1: not-run: { only }"],
  ["a cast to any", { "src/a.ts": "const a = 1 as any;" }, "src/a.ts:1: any:"],
  ["a barrel", { "src/a.ts": 'export * from "./b.ts";', "src/b.ts": "export const b = 1;" }, "src/a.ts:1: barrel:"],
  ["a name in camel case", { "src/dns/zoneFile.ts": "export const a = 1;" }, "src/dns/zoneFile.ts:1: name:"],
  ["a folder named test", { "tests/test/a.ts": "export const a = 1;" }, "tests/test/a.ts:1: name:"],
  [
    "a machine's path",
    { "src/a.ts": "export const a = 1;", "docs/a.md": `\n\nsee ${"/wo"}rk/x` },
    "docs/a.md:3: machine-path:",
  ],
  [
    "a registry host",
    { "src/a.ts": "export const a = 1;", "a.sh": `https://${"regis"}try.npmjs.org` },
    "a.sh:1: registry-host:",
  ],
  ["unfinished work", { "src/a.ts": `export const a = 1; // ${"TO"}DO more` }, "src/a.ts:1: unfinished:"],
  ["a banner", { "src/a.ts": `// ${"-".repeat(9)}\nexport const a = 1;` }, "src/a.ts:1: banner:"],
  [
    "a fixed sleep",
    { "src/a.test.ts": "await new Promise((resolve) => setTime" + "out(resolve, 9));" },
    "src/a.test.ts:1: fixed-sleep:",
  ],
];

for (const [what, files, expected] of planted) {
  test(`tidy reports ${what}`, () => {
    const { status, lines } = runTidy(files);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.ok(lines[0]?.startsWith(expected), lines.join("\n"));
    assert.equal(status, 1);
  });
}

test("tidy passes a tree that keeps the rules", () => {
  const { status, lines } = runTidy({
    "src/main.ts": 'import { node } from "./node/node.ts"; console.log(node);',
    "src/node/node.ts": 'import { a } from "../dns/a.ts"; export const node = a;',
    "src/dns/a.ts": 'import { b } from "../base/b.ts"; export const a = () => { switch (b) { default: return b; } };',
    "src/base/b.ts": "export const b: number = 1;",
    "src/dns/a.test.ts": 'import { node } from "../node/node.ts"; test("a", () => node);',
  });
  assert.deepEqual(lines, []);
  assert.equal(status, 0);
});

test("tidy refuses a tree without files", () => {
  assert.equal(runTidy({}).status, 1);
});

/**
 * The house rules as a check: layers, import cycles, lengths, banned calls, names and words. `node tools/tidy.ts [ROOT]`
 * prints one line a fault, and exits with code 1 when there is any.
 */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cycleFaults, layerFaults } from "./tidy/layers.ts";
import { checkSyntax } from "./tidy/syntax.ts";
import { textFaults } from "./tidy/text.ts";

const root = resolve(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url)));
const { paths, imports, faults } = checkSyntax(root);
// A run that saw no files would be green for nothing.
if (paths.length === 0) throw new Error(`${root}/tsconfig.json includes no files`);
const all = [...faults, ...layerFaults(paths, imports), ...cycleFaults(imports), ...textFaults(root)];
for (const { path, line, rule, detail } of all) console.error(`${path}:${line}: ${rule}: ${detail}`);
if (all.length > 0) process.exitCode = 1;
else console.log(`tidy: ${paths.length} files, ${imports.length} imports`);

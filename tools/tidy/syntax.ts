import { dirname, join, relative } from "node:path";
import * as ast from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import type { Fault, Import } from "./layers.ts";

const FILE_LINES_MAX = 500;
const FUNCTION_LINES_MAX = 80;

/** Where the server's own code may write to standard output: the entry, and the lines of a first start. */
const MAY_PRINT = new Set(["src/main.ts", "src/node/first-start.ts"]);
/** Skips a test for a missing peer program, loudly, and not at all where CI is set. */
const MAY_SKIP = new Set(["tests/support/peers.ts"]);

/** lmdb's synchronous and asynchronous transactions both hold its one writer; writes go through the store's queue. */
const BANNED_STORE_CALLS = new Set(["transaction", "transactionSync"]);
const NOT_RUN = new Set(["skip", "only", "todo"]);
const TEST_FUNCTIONS = new Set(["test", "it", "describe", "suite", "t"]);

const FUNCTIONS: ReadonlySet<ast.SyntaxKind> = new Set([
  ast.SyntaxKind.FunctionDeclaration,
  ast.SyntaxKind.FunctionExpression,
  ast.SyntaxKind.ArrowFunction,
  ast.SyntaxKind.MethodDeclaration,
  ast.SyntaxKind.Constructor,
  ast.SyntaxKind.GetAccessor,
  ast.SyntaxKind.SetAccessor,
]);

export type SyntaxReport = {
  readonly paths: readonly string[];
  readonly imports: readonly Import[];
  readonly faults: readonly Fault[];
};

type FileContext = {
  readonly path: string;
  readonly source: ast.SourceFile;
  readonly root: string;
  readonly imports: Import[];
  readonly faults: Fault[];
};

function lineOf({ source }: FileContext, position: number): number {
  return source.text.slice(0, position).split("\n").length;
}

function report(context: FileContext, node: ast.Node, rule: string, detail: string): void {
  context.faults.push({ path: context.path, line: lineOf(context, node.getStart(context.source)), rule, detail });
}

/** Notes a relative import; a bare specifier names a package and is none of the layers' business. */
function noteImport(context: FileContext, node: ast.Node, specifier: string): void {
  if (!specifier.startsWith(".")) return;
  const to = relative(context.root, join(context.root, dirname(context.path), specifier));
  if (to.startsWith("..")) report(context, node, "outside", `${specifier} lies outside the repository`);
  else context.imports.push({ from: context.path, to, line: lineOf(context, node.getStart(context.source)) });
}

function checkImports(context: FileContext, node: ast.Node): void {
  if (ast.isImportDeclaration(node) || ast.isExportDeclaration(node)) {
    const specifier = node.moduleSpecifier;
    if (specifier !== undefined && ast.isStringLiteral(specifier)) noteImport(context, node, specifier.text);
  } else if (ast.isCallExpression(node) && node.expression.kind === ast.SyntaxKind.ImportKeyword) {
    const specifier = node.arguments[0];
    if (specifier !== undefined && ast.isStringLiteral(specifier)) noteImport(context, node, specifier.text);
  } else if (ast.isNewExpression(node) && node.expression.getText(context.source) === "URL") {
    // A thread's entry is named by its address: new URL("./entry.ts", import.meta.url).
    const specifier = node.arguments?.[0];
    if (specifier === undefined || !ast.isStringLiteral(specifier) || !specifier.text.endsWith(".ts")) return;
    if (node.arguments?.[1]?.getText(context.source) === "import.meta.url") noteImport(context, node, specifier.text);
  }
}

function checkExports(context: FileContext, node: ast.Node): void {
  const isDefault =
    ast.isExportAssignment(node) ||
    node.kind === ast.SyntaxKind.DefaultKeyword ||
    (ast.isExportSpecifier(node) && node.name.text === "default");
  // `default:` of a switch is a clause, not this keyword's node.
  if (isDefault) report(context, node, "default-export", "exports a default; export a name");
}

function checkCalls(context: FileContext, node: ast.Node): void {
  if (!ast.isCallExpression(node) || !ast.isPropertyAccessExpression(node.expression)) return;
  const method = node.expression.name.text;
  const target = node.expression.expression.getText(context.source);
  const inServer = context.path.startsWith("src/");
  if (inServer && target === "console" && method === "log" && !MAY_PRINT.has(context.path)) {
    report(context, node, "banned-call", "console.log; use the log of base");
  }
  if (inServer && BANNED_STORE_CALLS.has(method)) report(context, node, "banned-call", `${target}.${method}`);
  if (NOT_RUN.has(method) && TEST_FUNCTIONS.has(target) && !MAY_SKIP.has(context.path)) {
    report(context, node, "not-run", `${target}.${method}: every test runs`);
  }
}

/** The options form of the same thing: test("name", { skip: true }, ...). */
function checkTestOptions(context: FileContext, node: ast.Node): void {
  if (!ast.isCallExpression(node) || !TEST_FUNCTIONS.has(node.expression.getText(context.source))) return;
  for (const argument of node.arguments) {
    if (!ast.isObjectLiteralExpression(argument)) continue;
    for (const property of argument.properties) {
      const name = ast.isSpreadAssignment(property) ? "" : (property.name?.getText(context.source) ?? "");
      if (NOT_RUN.has(name)) report(context, property, "not-run", `{ ${name} }: every test runs`);
    }
  }
}

function checkAnyCast(context: FileContext, node: ast.Node): void {
  if (ast.isAsExpression(node) && node.type.kind === ast.SyntaxKind.AnyKeyword) report(context, node, "any", "as any");
}

/** describe() only groups; its tests are functions of their own. */
function isGroup(node: ast.Node, source: ast.SourceFile): boolean {
  const { parent } = node;
  return ast.isCallExpression(parent) && ["describe", "suite"].includes(parent.expression.getText(source));
}

function checkLength(context: FileContext, node: ast.Node): void {
  if (!FUNCTIONS.has(node.kind) || isGroup(node, context.source)) return;
  const lines = lineOf(context, node.end) - lineOf(context, node.getStart(context.source)) + 1;
  if (lines > FUNCTION_LINES_MAX)
    report(context, node, "function-length", `${lines} lines; at most ${FUNCTION_LINES_MAX}`);
}

/** A file of nothing but `export ... from` hides where things are. */
function checkBarrel(context: FileContext): void {
  const { statements } = context.source;
  if (statements.length === 0) return;
  if (statements.every((statement) => ast.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined)) {
    report(context, context.source, "barrel", "only re-exports; import from where things are");
  }
}

const NODE_CHECKS = [checkImports, checkExports, checkCalls, checkTestOptions, checkAnyCast, checkLength];

function checkFile(context: FileContext): void {
  const lines = context.source.text.split("\n").length - 1;
  if (lines > FILE_LINES_MAX) {
    context.faults.push({
      path: context.path,
      line: FILE_LINES_MAX + 1,
      rule: "file-length",
      detail: `${lines} lines; at most ${FILE_LINES_MAX}`,
    });
  }
  checkBarrel(context);
  const visit = (node: ast.Node): void => {
    for (const check of NODE_CHECKS) check(context, node);
    node.forEachChild(visit);
  };
  context.source.forEachChild(visit);
}

/** Parses all files of the project whose tsconfig.json lies in `root`, and checks what needs their syntax. */
export function checkSyntax(root: string): SyntaxReport {
  const api = new API({ cwd: root });
  try {
    const config = join(root, "tsconfig.json");
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} is not a project`);
    const paths = project.rootFiles.map((file) => relative(root, file)).sort();
    const imports: Import[] = [];
    const faults: Fault[] = [];
    for (const path of paths) {
      const source = project.program.getSourceFile(join(root, path));
      if (source === undefined) throw new Error(`${path} was not parsed`);
      checkFile({ path, source, root, imports, faults });
    }
    return { paths, imports, faults };
  } finally {
    api.close();
  }
}

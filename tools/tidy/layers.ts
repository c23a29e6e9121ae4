/** What each folder of src/ may import besides itself; design and ARCHITECTURE.md give the reasons. */
export const LAYERS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  runner: ["base"],
  dns: ["base"],
  model: ["base", "dns"],
  image: ["base", "dns"],
  answer: ["base", "dns", "image"],
  listen: ["base", "dns", "image", "answer"],
  resolve: ["base", "dns", "image"],
  primary: ["base", "dns", "image"],
  store: ["base", "model"],
  cluster: ["base"],
  replication: ["base", "model", "store", "cluster"],
  commands: ["base", "dns", "model", "store"],
  publish: ["base", "dns", "model", "image", "store"],
  health: ["base", "model", "image", "store"],
  notify: ["base", "dns", "model"],
  cloud: ["base", "model", "store", "commands"],
  api: ["base", "model", "store", "commands"],
};

/** The composition root may import every layer, and only src/main.ts may import it. */
const ROOT_LAYER = "node";

export type Fault = { readonly path: string; readonly line: number; readonly rule: string; readonly detail: string };

/** An import of a file of this repository; paths are relative to its root. */
export type Import = { readonly from: string; readonly to: string; readonly line: number };

/** The folder of src/ that a path lies in, "" for src/main.ts and its like, undefined outside src/. */
function layerOf(path: string): string | undefined {
  const parts = path.split("/");
  if (parts[0] !== "src") return undefined;
  return parts.length > 2 ? parts[1] : "";
}

/** Unit tests may build their fixtures with any layer; what runs in production may not. */
function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

function mayImport(from: string, to: string): boolean {
  if (from === to || from === "") return true;
  if (to === ROOT_LAYER || to === "") return false;
  return from === ROOT_LAYER || (LAYERS[from]?.includes(to) ?? false);
}

function layerFault({ from, to, line }: Import): Fault | undefined {
  if (isTest(to)) return { path: from, line, rule: "layers", detail: `imports the test ${to}` };
  const fromLayer = layerOf(from);
  if (fromLayer === undefined || isTest(from)) return undefined;
  const toLayer = layerOf(to);
  if (toLayer !== undefined && mayImport(fromLayer, toLayer)) return undefined;
  const allowed = ["its own files", ...(LAYERS[fromLayer] ?? [])].join(", ");
  return { path: from, line, rule: "layers", detail: `imports ${to}; ${fromLayer} may import ${allowed}` };
}

/** Imports against the direction of the layers, and folders of src/ that no layer names. */
export function layerFaults(paths: readonly string[], imports: readonly Import[]): Fault[] {
  const faults = imports.map(layerFault).filter((fault) => fault !== undefined);
  for (const path of paths) {
    const layer = layerOf(path);
    if (layer === undefined || layer === "" || layer === ROOT_LAYER || layer in LAYERS) continue;
    faults.push({ path, line: 1, rule: "layers", detail: `src/${layer} is not in the table of layers` });
  }
  return faults;
}

/** One fault a cycle of imports, with its path; type-only imports count, because they bind readers all the same. */
export function cycleFaults(imports: readonly Import[]): Fault[] {
  const importsOf = Map.groupBy(imports, ({ from }) => from);
  const faults: Fault[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string) => {
    if (done.has(path)) return;
    trail.push(path);
    for (const { to, line } of importsOf.get(path) ?? []) {
      const start = trail.indexOf(to);
      if (start < 0) visit(to);
      else faults.push({ path, line, rule: "cycle", detail: [...trail.slice(start), to].join(" -> ") });
    }
    trail.pop();
    done.add(path);
  };
  for (const path of importsOf.keys()) visit(path);
  return faults;
}

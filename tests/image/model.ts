/** The image as plain maps: what it has to hold and to answer, written for being obvious. */

/** RRset values by type, by relative name in text; a name that is there without RRsets is an empty non-terminal. */
export type ModelZone = Map<string, Map<number, number>>;

export const NS = 2;

/** Labels of a relative or absolute name without the root, leftmost first. */
export function labelsOf(name: string): string[] {
  return name.split(".").filter((label) => label !== "");
}

export function createModelZone(): ModelZone {
  return new Map([["", new Map()]]);
}

export function ensureName(zone: ModelZone, relative: string): Map<number, number> {
  const labels = labelsOf(relative);
  for (let from = 0; from < labels.length; from++) {
    const name = labels.slice(from).join(".");
    if (!zone.has(name)) zone.set(name, new Map());
  }
  return zone.get(relative)!;
}

/** Takes an RRset away, and the names that are left with nothing at and below them. */
export function removeValue(zone: ModelZone, relative: string, type: number): boolean {
  if (zone.get(relative)?.delete(type) !== true) return false;
  const labels = labelsOf(relative);
  for (let from = 0; from < labels.length; from++) {
    const name = labels.slice(from).join(".");
    const hasBelow = [...zone.keys()].some((other) => other.endsWith(`.${name}`));
    if (zone.get(name)!.size > 0 || hasBelow) break;
    zone.delete(name);
  }
  return true;
}

/** What a look-up finds: kind, zone and the name that holds the RRsets. */
export type ModelFound = {
  readonly kind: "none" | "node" | "wildcard" | "cut" | "nothing";
  readonly zone: string;
  readonly name: string;
};

/** Looks an absolute name up, as RFC 1034 section 4.3.2 and RFC 4592 say. */
export function findInModel(zones: ReadonlyMap<string, ModelZone>, absolute: string): ModelFound {
  const labels = labelsOf(absolute);
  for (let apex = 0; apex <= labels.length; apex++) {
    const name = `${labels.slice(apex).join(".")}.`;
    const zone = zones.get(name);
    if (zone !== undefined) return { zone: name, ...findInZone(zone, labels.slice(0, apex)) };
  }
  return { kind: "none", zone: "", name: "" };
}

function findInZone(zone: ModelZone, labels: readonly string[]): Pick<ModelFound, "kind" | "name"> {
  let encloser = "";
  for (let from = labels.length - 1; from >= 0; from--) {
    const name = labels.slice(from).join(".");
    const sets = zone.get(name);
    if (sets === undefined) {
      const wildcard = encloser === "" ? "*" : `*.${encloser}`;
      return zone.has(wildcard) ? { kind: "wildcard", name: wildcard } : { kind: "nothing", name: "" };
    }
    if (sets.has(NS)) return { kind: "cut", name };
    encloser = name;
  }
  return { kind: "node", name: encloser };
}

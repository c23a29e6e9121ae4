/** What a TSIG key may change by dynamic update (RFC 2136 section 3.3). */
import type { TsigGrant, TsigKeyBody } from "./objects.ts";

type Grants = Pick<TsigKeyBody, "grants">;

/** Whether the key may change anything in the zone, a canonical name. A key without grants may change every zone. */
export function mayUpdateZone({ grants }: Grants, zone: string): boolean {
  return grants === undefined || grants.some((grant) => grant.update === true && grant.zone === zone);
}

/** Whether the key may change that type at that name, relative to the zone. What is no type of a record falls to keys without `types`. */
export function mayUpdate({ grants }: Grants, zone: string, name: string, type: string): boolean {
  if (grants === undefined) return true;
  return grants.some((grant) => grant.update === true && grant.zone === zone && covers(grant, name, type));
}

function covers({ names, types }: TsigGrant, name: string, type: string): boolean {
  if (types !== undefined && !types.some((each) => each === type)) return false;
  return names === undefined || names.some((pattern) => matchesName(pattern, name));
}

/**
 * Whether the pattern of a grant stands for the name; both are canonical and relative. A label `*` of the pattern stands
 * for one or more labels, so `*.dev` is all that lies below `dev`, and `_acme-challenge.*` that name below every other.
 * It covers the name of a wildcard too. The apex, "@", is only matched by itself.
 */
export function matchesName(pattern: string, name: string): boolean {
  if (pattern === name) return true;
  if (name === "@" || pattern === "@") return false;
  const patterns = labelsOf(pattern);
  const labels = labelsOf(name);
  // The last `*` that was met can always take one label more, and no earlier one has to: no other way back is needed.
  let at = 0;
  let starAt = -1;
  let starEnd = 0;
  let index = 0;
  while (index < labels.length) {
    if (patterns[at] === "*") {
      starAt = at++;
      starEnd = ++index;
    } else if (at < patterns.length && patterns[at] === labels[index]) {
      at++;
      index++;
    } else if (starAt >= 0) {
      at = starAt + 1;
      index = ++starEnd;
    } else {
      return false;
    }
  }
  return at === patterns.length;
}

/** Dots behind a backslash belong to their label. */
function labelsOf(name: string): readonly string[] {
  return name.match(/(?:[^.\\]|\\.)+/gs) ?? [];
}

/** From the schema of a request's body to bodies with exactly one thing wrong, and where the refusal has to point. */

type Json = Readonly<Record<string, unknown>>;
/** One body with one fault: its JSON text, and the pointer that the refusal names. */
export type FaultyBody = { readonly text: string; readonly pointer: string; readonly what: string };

/** A place in the body: the members that lead there, and what may be there. */
type Place = { readonly members: readonly (string | number)[]; readonly schema: Json; readonly isRequired: boolean };

const ARRAY_ITEMS_TRIED_MAX = 20_000;
const STRING_TRIED_MAX = 100_000;
/** A member that stands for text that JSON.stringify cannot write. */
const RAW_MARK = "raw json here";

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function alternativesOf(schema: Json): readonly Json[] {
  return Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject).flatMap(alternativesOf) : [schema];
}

/** The types of JSON that the schema takes; undefined: it takes all. */
function typesOf(schema: Json): ReadonlySet<string> | undefined {
  const types = new Set<string>();
  for (const alternative of alternativesOf(schema)) {
    if (typeof alternative.type === "string") types.add(alternative.type);
    else if (Array.isArray(alternative.enum)) for (const word of alternative.enum) types.add(typeof word);
    else if (alternative.const !== undefined) types.add(typeof alternative.const);
    else return undefined;
  }
  return types;
}

function placesOf(schema: Json, members: readonly (string | number)[] = [], isRequired = true): readonly Place[] {
  const inner = alternativesOf(schema).flatMap((alternative) => {
    const properties = isObject(alternative.properties) ? Object.entries(alternative.properties) : [];
    const required = Array.isArray(alternative.required) ? alternative.required : [];
    const keyed = isObject(alternative.patternProperties) ? Object.values(alternative.patternProperties) : [];
    return [
      ...properties.flatMap(([name, each]) =>
        isObject(each) ? placesOf(each, [...members, name], required.includes(name)) : [],
      ),
      ...keyed.flatMap((each) => (isObject(each) ? placesOf(each, [...members, "a key"], false) : [])),
      ...(isObject(alternative.items) ? placesOf(alternative.items, [...members, 0], false) : []),
    ];
  });
  return [{ members, schema, isRequired }, ...inner];
}

/** Something of the right shape, with no more in it than has to be. */
function sampleOf(schema: Json): unknown {
  const [first = {}] = alternativesOf(schema).filter(({ type }) => type !== "null");
  if (Array.isArray(first.examples)) return first.examples[0];
  if (Array.isArray(first.enum)) return first.enum[0];
  if (first.const !== undefined) return first.const;
  if (first.type === "object") {
    const properties = isObject(first.properties) ? first.properties : {};
    const required = Array.isArray(first.required) ? first.required.map(String) : [];
    return Object.fromEntries(required.map((name) => [name, sampleOf(Object(properties[name]))]));
  }
  if (first.type === "array") return isObject(first.items) ? [sampleOf(first.items)] : [];
  if (first.type === "integer" || first.type === "number") return first.minimum ?? 0;
  return first.type === "boolean" ? true : "text";
}

/** A copy of `value` with `replaced` at the place; what has to be there on the way is made. */
function withAt(value: unknown, schema: Json, members: readonly (string | number)[], replaced: unknown): unknown {
  const [member, ...rest] = members;
  if (member === undefined) return replaced;
  const kind = typeof member === "number" ? "array" : "object";
  const alternative = alternativesOf(schema).find(({ type }) => type === kind) ?? {};
  const { properties, patternProperties } = alternative;
  const named = isObject(properties) ? properties[member] : undefined;
  const keyed = isObject(patternProperties) ? Object.values(patternProperties)[0] : undefined;
  const inner = Object(kind === "array" ? alternative.items : (named ?? keyed));
  if (kind === "array") return [withAt(Array.isArray(value) ? value[0] : sampleOf(inner), inner, rest, replaced)];
  const members_ = isObject(value) ? value : Object(sampleOf(alternative));
  const entries = Object.entries(members_).filter(([name]) => name !== member);
  const changed = withAt(Object.hasOwn(members_, member) ? members_[member] : sampleOf(inner), inner, rest, replaced);
  return Object.fromEntries(replaced === undefined && rest.length === 0 ? entries : [...entries, [member, changed]]);
}

function pointerOf(members: readonly (string | number)[]): string {
  return members.map((member) => `/${String(member).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

type Fault = {
  readonly what: string;
  readonly value: unknown;
  readonly raw?: string;
  readonly below?: string | number;
};

const OF_EACH_TYPE: readonly (readonly [types: readonly string[], value: unknown])[] = [
  [["null"], null],
  [["boolean"], true],
  [["number", "integer"], 5],
  [["string"], "text"],
  [["array"], []],
  [["object"], {}],
  [["object"], { length: 1, 0: "a" }],
];

function wrongTypes(schema: Json): readonly Fault[] {
  const types = typesOf(schema);
  if (types === undefined) return [];
  return OF_EACH_TYPE.filter(([names]) => !names.some((name) => types.has(name))).map(([names, value]) => ({
    what: `${names[0]} in its place`,
    value,
  }));
}

function stringFaults({ maxLength, minLength, enum: words }: Json): readonly Fault[] {
  const faults: Fault[] = [
    { what: "half a surrogate pair", value: undefined, raw: '"a\\ud83d"' },
    { what: "the other half", value: undefined, raw: '"\\udc00b"' },
  ];
  if (Number(minLength ?? 0) > 0) faults.push({ what: "empty", value: "" });
  if (Number(minLength ?? 0) > 1) faults.push({ what: "too short", value: "x".repeat(Number(minLength) - 1) });
  if (typeof maxLength === "number" && maxLength < STRING_TRIED_MAX) {
    faults.push({ what: "too long", value: "x".repeat(maxLength + 1) });
    faults.push({ what: "too long in pairs", value: "\u{1f600}".repeat(maxLength + 1) });
  }
  if (Array.isArray(words)) {
    for (const word of ["", "nonsense", "__proto__", "constructor", `${words[0]} `, `${words[0]}\u0000`]) {
      faults.push({ what: `the word ${JSON.stringify(word)}`, value: word });
    }
  }
  return faults;
}

function numberFaults({ type, minimum, maximum }: Json): readonly Fault[] {
  const faults: Fault[] = [
    { what: "1e999", value: undefined, raw: "1e999" },
    { what: "-1e999", value: undefined, raw: "-1e999" },
    { what: "a number as text", value: "5" },
    { what: "NaN as text", value: "NaN" },
  ];
  if (type === "integer") {
    faults.push({ what: "half a one", value: 0.5 }, { what: "beyond 2^53", value: undefined, raw: "9007199254740993" });
  }
  if (typeof minimum === "number") faults.push({ what: "too small", value: minimum - 1 });
  if (typeof maximum === "number") faults.push({ what: "too great", value: maximum + 1 });
  return faults;
}

function arrayFaults({ items, minItems, maxItems, uniqueItems }: Json): readonly Fault[] {
  const item = isObject(items) ? sampleOf(items) : 0;
  const faults: Fault[] = [];
  if (Number(minItems ?? 0) > 0) faults.push({ what: "empty", value: [] });
  if (typeof maxItems === "number" && maxItems <= ARRAY_ITEMS_TRIED_MAX) {
    faults.push({ what: "too many entries", value: Array(maxItems + 1).fill(item) });
  }
  if (uniqueItems === true) faults.push({ what: "an entry twice", value: [item, item], below: 1 });
  return faults;
}

function objectFaults(schema: Json): readonly Fault[] {
  const sample = sampleOf(schema);
  const faults: Fault[] = [];
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  for (const name of required) {
    const others = Object.entries(Object(sample)).filter(([member]) => member !== name);
    faults.push({ what: `without ${name}`, value: Object.fromEntries(others), below: name });
  }
  if (schema.additionalProperties === false) {
    for (const name of ["surplus", "constructor", "hasOwnProperty", "toString", "", "a/b~c", "\u0000", "\u202e"]) {
      faults.push({ what: `with ${JSON.stringify(name)}`, value: { ...Object(sample), [name]: 1 }, below: name });
    }
  }
  if (typeof schema.maxProperties === "number") {
    const names = Array.from({ length: schema.maxProperties + 1 }, (_, index) => [`k${index}`, 1]);
    faults.push({ what: "too many members", value: Object.fromEntries(names) });
  }
  return faults;
}

function faultsAt({ schema, isRequired, members }: Place): readonly Fault[] {
  const faults: Fault[] = [...wrongTypes(schema)];
  if (isRequired && members.length > 0) faults.push({ what: "missing", value: undefined });
  // Where one of two things is taken, what is wrong for one may be right for the other.
  const alternatives = alternativesOf(schema).filter(({ type }) => type !== "null");
  const [only, ...more] = alternatives;
  if (only === undefined || more.length > 0) return faults;
  if (only.type === "string" || Array.isArray(only.enum)) faults.push(...stringFaults(only));
  if (only.type === "integer" || only.type === "number") faults.push(...numberFaults(only));
  if (only.type === "array") faults.push(...arrayFaults(only));
  if (only.type === "object") faults.push(...objectFaults(only));
  return faults;
}

/** Every body with one fault that the schema forbids; the rest of each is `example`. */
export function faultyBodies(schema: Json, example: unknown): readonly FaultyBody[] {
  return placesOf(schema).flatMap((place) =>
    faultsAt(place).flatMap(({ what, value, raw, below }) => {
      if (value === undefined && raw === undefined && place.members.length === 0) return [];
      const body = withAt(example, schema, place.members, raw === undefined ? value : RAW_MARK);
      const text = JSON.stringify(body) ?? "";
      const members = below === undefined ? place.members : [...place.members, below];
      return [
        {
          text: raw === undefined ? text : text.replace(JSON.stringify(RAW_MARK), () => raw),
          pointer: pointerOf(members),
          what,
        },
      ];
    }),
  );
}

/** Checks of values that a peer sent: each gives the value back with its type, or throws MalformedError. */

export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

const DIGEST_PATTERN = /^[0-9a-f]{16}$/;

export function asRecord(given: unknown): Readonly<Record<string, unknown>> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw new MalformedError("not an object");
  return given as Readonly<Record<string, unknown>>;
}

/** An integer from 0 to `max`. */
export function count(given: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof given !== "number" || !Number.isSafeInteger(given) || given < 0 || given > max) {
    throw new MalformedError("a number out of range");
  }
  return given;
}

export function text(given: unknown, charactersMax: number): string {
  if (typeof given !== "string") throw new MalformedError("a text that is none");
  if (given.length > charactersMax) throw new MalformedError("a text that is too long");
  return given;
}

export function optionalText(given: unknown, charactersMax: number): string | undefined {
  return given === undefined ? undefined : text(given, charactersMax);
}

export function textOrNull(given: unknown, charactersMax: number): string | null {
  return given === null ? null : text(given, charactersMax);
}

export function nullable<Value>(given: unknown, check: (given: unknown) => Value): Value | null {
  return given === null ? null : check(given);
}

export function flag(given: unknown): boolean {
  if (typeof given !== "boolean") throw new MalformedError("neither true nor false");
  return given;
}

export function digest(given: unknown): string {
  const value = text(given, 16);
  if (!DIGEST_PATTERN.test(value)) throw new MalformedError("a digest that is none");
  return value;
}

export function list<Value>(given: unknown, max: number, check: (given: unknown) => Value): readonly Value[] {
  if (!Array.isArray(given)) throw new MalformedError("not a list");
  if (given.length > max) throw new MalformedError("a list that is too long");
  return given.map((each) => check(each));
}

/** The rules that every PUT shares: what a client read it may send back, and what it may not change it may not change. */
import { isDeepStrictEqual } from "node:util";
import type { FieldFault } from "./refusal.ts";
import { pointerToken } from "./shape.ts";

/** A fault for each read-only field that `given` holds with another value than `current` (the view that GET shows). */
export function readOnlyFaults(
  current: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
  readOnly: readonly string[],
): FieldFault[] {
  return readOnly
    .filter((name) => Object.hasOwn(given, name) && given[name] !== undefined)
    .filter((name) => !isDeepStrictEqual(given[name], current[name]))
    .map((name) => ({ pointer: `/${pointerToken(name)}`, detail: "is read-only and differs from the stored value" }));
}

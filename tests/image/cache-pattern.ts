/** Cached answers whose every byte follows from their name and one value, so that a torn one shows. */
import type { CachedAnswer } from "../../src/image/cache.ts";
import { cachedAnswer } from "../support/cached-answers.ts";

export const RACE_NAMES = 5_000;

export function nameOfIndex(index: number): string {
  return `name-${index}.race.test`;
}

export function patternAnswer(index: number, value: number): CachedAnswer {
  const length = value % 97 === 0 ? 8_000 + (value % 1_000) : 16 + (value % 300);
  const bytes = Uint8Array.from({ length }, (_, at) => (at * 13 + value * 7) & 0xff);
  const places = Array.from({ length: value % 40 }, (_, at) => (at * 3 + value) & 0xffff);
  return cachedAnswer(nameOfIndex(index), {
    route: value,
    bytes,
    ttls: places,
    pointers: places.slice(1),
    targets: places.slice(0, 10),
  });
}

export function isPatternAnswer(index: number, found: Omit<CachedAnswer, "routing">): boolean {
  const { bytes, name, ttls, pointers, targets } = patternAnswer(index, found.route);
  const same = (left: ArrayLike<number>, right: ArrayLike<number>): boolean =>
    left.length === right.length && Array.prototype.every.call(left, (item, at) => item === right[at]);
  return (
    same(bytes, found.bytes) &&
    same(name, found.name) &&
    same(ttls, found.ttls) &&
    same(pointers, found.pointers) &&
    same(targets, found.targets)
  );
}

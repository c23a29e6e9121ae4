import { existsSync } from "node:fs";
import type { TestContext } from "node:test";
import { bind } from "./peers/bind.ts";
import { gdnsd } from "./peers/gdnsd.ts";
import { knot } from "./peers/knot.ts";
import { nsd } from "./peers/nsd.ts";
import { findProgram, type ServerProgram } from "./server.ts";

/** The servers that ours is held against, in the order in which tables show them. */
export const peers = { nsd, knot, bind, gdnsd } as const satisfies Record<string, ServerProgram>;

/**
 * The path of a program that a test needs, or undefined after skipping the test with one line that says so. Where CI
 * is set nothing is skipped: the missing program is an error.
 */
export function requireProgram(test: TestContext, command: string): string | undefined {
  const path = findProgram(command);
  if (path !== undefined) return path;
  if ((process.env.CI ?? "") !== "") throw new Error(`${command} is not installed, and CI is set`);
  test.skip(`SKIPPED: ${command} is not installed; .ci/run names its Debian package`);
  return undefined;
}

/** Whether the machine has a device; skips the test with one line where not, also where CI is set: no package brings one. */
export function requireDevice(test: TestContext, path: string): boolean {
  if (existsSync(path)) return true;
  test.skip(`SKIPPED: this machine has no ${path}`);
  return false;
}

/** Whether the test runs as root, which it needs; skips it like `requireProgram` where not. */
export function requireRoot(test: TestContext): boolean {
  if (process.geteuid?.() === 0) return true;
  if ((process.env.CI ?? "") !== "") throw new Error("this test needs root, and CI is set");
  test.skip("SKIPPED: this test needs root");
  return false;
}

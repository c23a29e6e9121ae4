import type { TestContext } from "node:test";
import { type Browser, chromium } from "playwright-core";
import { requireProgram } from "./peers.ts";

/** A real browser without a window, or undefined after skipping the test loudly (never where CI is set). */
export async function openBrowser(test: TestContext): Promise<Browser | undefined> {
  const executablePath = requireProgram(test, "chromium");
  if (executablePath === undefined) return undefined;
  const browser = await chromium.launch({
    executablePath,
    // Tests run as root, where its sandbox does not; it opens nothing but servers of the test.
    args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server"],
  });
  test.after(() => browser.close());
  return browser;
}

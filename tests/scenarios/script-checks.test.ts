/** Script checks of a whole node: from the API to the sandbox and back to its status. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { addArguments, BLOCKING_RULES } from "../../src/runner/blocked-addresses.ts";
import { requireProgram, requireRoot } from "../support/peers.ts";
import { processTree } from "../support/proc.ts";
import { startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { MAIN, nodeEnvironment, type ScenarioNode, startNode } from "./running-node.ts";
import { LONG_MS } from "./script-lab.ts";

/** Nobody's, and no other test's. */
const SCRIPT_USER = 60_957;

function removeRules(): void {
  for (const rule of BLOCKING_RULES) {
    const words = addArguments(rule, SCRIPT_USER).map((word) => (word === "add" ? "del" : word));
    try {
      execFileSync("ip", words, { stdio: "ignore" });
    } catch {
      // This machine has no IPv6, or no runner came as far as that.
    }
  }
}

/** Whether this machine can run scripts; otherwise the test is skipped loudly. */
function canRun(context: TestContext): boolean {
  if (["bwrap", "ip"].some((program) => requireProgram(context, program) === undefined)) return false;
  if (!requireRoot(context)) return false;
  context.after(removeRules);
  return true;
}

function scriptSettings(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { SVC_SCRIPT_CHECKS_ENABLED: "true", SVC_SCRIPT_CHECKS_USER: `${SCRIPT_USER}`, ...env };
}

async function createCheck(
  api: ApiClient,
  name: string,
  command: string,
  args: readonly string[] = [],
): Promise<string> {
  const timing = { interval_seconds: 2, timeout_seconds: 2, failure_threshold: 1 };
  const body = { name, protocol: "script", ...timing, script_config: { command, args } };
  const answer = await api.ask("POST", "/healthchecks", body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.id;
}

async function statusOf(api: ApiClient, id: string) {
  const { status, body } = await api.ask("GET", `/healthchecks/${id}/status`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

async function untilState(api: ApiClient, id: string, state: string) {
  return await waitFor(`${id} is ${state}`, LONG_MS, async () => {
    const status = await statusOf(api, id);
    return status.state === state && status;
  });
}

/** Process id of the node's runner, a child of the node. */
function runnerOf(node: ScenarioNode): number | undefined {
  return processTree(node.child.pid).find((pid) => commandLine(pid).some((word) => word.endsWith("/runner/entry.ts")));
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function isRunning(pid: number): boolean {
  return commandLine(pid).join("") !== "";
}

test("script checks of a node have verdicts, and a runner that dies is replaced", async (context) => {
  if (!canRun(context)) return;
  const scripts = mkdtempSync(join(tmpdir(), "signpost-own-scripts-"));
  context.after(() => rmSync(scripts, { recursive: true, force: true }));
  chmodSync(scripts, 0o755);
  const own = join(scripts, "check");
  writeFileSync(own, `#!/bin/sh\necho "no $1" >&2\nexit 4\n`, { mode: 0o755 });
  const key = "a key that no script may see";
  await using node = await startNode({
    env: scriptSettings({
      SVC_SCRIPT_CHECKS_DIRECTORY: scripts,
      SVC_REPLICATION_ENCRYPT_KEY: key,
      SVC_REPLICATION_LISTEN: "127.0.0.1:0",
    }),
  });
  await using api = await signIn(node.api);
  const good = await createCheck(api, "good", "/usr/bin/true");
  const bad = await createCheck(api, "bad", own, ["hunter2"]);
  await untilState(api, good, "healthy");
  const status = await untilState(api, bad, "unhealthy");
  const probe = status.probes.at(-1);
  assert.equal(probe.error, "script", JSON.stringify(probe));
  assert.equal(probe.detail, "exit status 4: no ***");

  const first = await waitFor("the runner", LONG_MS, () => runnerOf(node));
  const seen = [readFileSync(`/proc/${first}/environ`, "utf8"), ...commandLine(first)].join("\n");
  assert.ok(!seen.includes(key) && !seen.includes("SVC_"));
  const files = readdirSync(`/proc/${first}/fd`).map((name) => {
    try {
      return readlinkSync(`/proc/${first}/fd/${name}`);
    } catch {
      return "";
    }
  });
  assert.deepEqual(
    files.filter((file) => file.startsWith(join(node.directory, "data"))),
    [],
  );

  process.kill(first, "SIGKILL");
  const second = await waitFor("another runner", LONG_MS, () => {
    const found = runnerOf(node);
    return found !== undefined && found !== first && found;
  });
  const since = Date.now();
  await waitFor("scripts that it runs", LONG_MS, async () => {
    const { probes } = await statusOf(api, good);
    const last = probes.at(-1);
    return last !== undefined && last.error === undefined && Date.parse(last.at) > since;
  });
  assert.deepEqual(await node.child.stop(), { code: 0, signal: null });
  assert.ok(!isRunning(second));
});

test("without its service a runner ends, however that ended", async (context) => {
  if (!canRun(context)) return;
  await using node = await startNode({ env: scriptSettings() });
  const runner = await waitFor("the runner", LONG_MS, () => runnerOf(node));
  process.kill(node.child.pid, "SIGKILL");
  await node.child.exited;
  await waitFor("the end of the runner", LONG_MS, () => !isRunning(runner));
});

test("a runner that is not there makes checks unhealthy", async (context) => {
  if (!canRun(context)) return;
  await using node = await startNode({
    env: scriptSettings({ SVC_SCRIPT_CHECKS_RUNNER_SOCKET: "/nonexistent/socket" }),
  });
  await using api = await signIn(node.api);
  const id = await createCheck(api, "good", "/usr/bin/true");
  const { probes } = await untilState(api, id, "unhealthy");
  assert.equal(probes.at(-1).error, "runner", JSON.stringify(probes));
  assert.equal(runnerOf(node), undefined);
});

test("a node that may run no scripts has no runner", async () => {
  await using node = await startNode();
  assert.equal(runnerOf(node), undefined);
});

test("a user or a directory that scripts must not have stops the start", async (context) => {
  if (!canRun(context)) return;
  const directory = mkdtempSync(join(tmpdir(), "signpost-refused-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const open = join(directory, "open");
  mkdirSync(open);
  chmodSync(open, 0o777);
  for (const [name, value, expected] of [
    ["USER", "root", /scripts must not run as root/],
    ["USER", "0", /scripts must not run as root/],
    ["USER", "no-such-user", /no user "no-such-user"/],
    ["DIRECTORY", "/nonexistent", /script_checks\.directory \/nonexistent: ENOENT/],
    ["DIRECTORY", MAIN, /is not a directory/],
    ["DIRECTORY", "/", /the service's data lies there/],
    ["DIRECTORY", open, /other users may write/],
  ] as const) {
    const env = nodeEnvironment(directory, { env: scriptSettings({ [`SVC_SCRIPT_CHECKS_${name}`]: value }) });
    const child = await startChild("refused", process.execPath, [MAIN], { env });
    assert.deepEqual(await child.exited, { code: 1, signal: null }, child.output());
    assert.match(child.output().trimEnd().split("\n").at(-1) ?? "", expected);
  }
});

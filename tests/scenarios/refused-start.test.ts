import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startChild } from "../support/process.ts";
import { EXAMPLE_ZONE, MAIN, nodeEnvironment, startNode } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-refused-"));
await chmod(directory, 0o777);
after(() => rm(directory, { recursive: true, force: true }));

type Attempt = {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
};

/** Lines that a start which must fail has printed; asserts exit code 1. */
async function failedStart({ args, env, command = [] }: Attempt): Promise<readonly string[]> {
  const [program, ...words] = [...command, process.execPath, MAIN, ...(args ?? ["--zone", EXAMPLE_ZONE])];
  assert.ok(program !== undefined);
  const child = await startChild("refused", program, words, { env: nodeEnvironment(directory, { env: env ?? {} }) });
  assert.deepEqual(await child.exited, { code: 1, signal: null }, child.output());
  return child.output().trimEnd().split("\n");
}

async function assertOneLine(attempt: Attempt, pattern: RegExp): Promise<void> {
  const lines = await failedStart(attempt);
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0] ?? "", pattern);
}

test("a missing zone file is one clear line", async () => {
  await assertOneLine(
    { args: ["--zone", "/nonexistent"] },
    /^signpost: cannot read zone file \/nonexistent: there is no/,
  );
});

test("a file that is no zone is one clear line", async () => {
  const empty = join(directory, "empty.zone");
  await writeFile(empty, "");
  for (const file of [process.execPath, MAIN, empty]) {
    await assertOneLine({ args: ["--zone", file] }, /^signpost: \S+ is no zone file: /);
  }
});

test("a device or a FIFO is not opened as a zone file", async () => {
  const fifo = join(directory, "fifo.zone");
  execFileSync("mkfifo", [fifo]);
  for (const file of ["/dev/null", "/dev/zero", fifo]) {
    await assertOneLine({ args: ["--zone", file] }, /^signpost: cannot read zone file \S+: it is no regular file$/);
  }
});

test("every error of a zone file is a line with its place, then one line sums up", async () => {
  const file = join(directory, "faulty.zone");
  await writeFile(file, "$ORIGIN a.test.\n@ 300 SOA ns1 h 1 2 3 4 5\n@ 300 NS ns1\nx A 1.2.3\ny FOO z\n");
  const lines = await failedStart({ args: ["--zone", file] });
  assert.deepEqual(
    lines.map((line) => line.split(": ", 1)[0]),
    [`${file}:4:5`, `${file}:5:3`, "signpost"],
  );
  assert.equal(lines.at(-1), `signpost: zone file ${file} has 2 errors`);
});

test("two files of one zone are one clear line", async () => {
  await assertOneLine({ args: ["--zone", EXAMPLE_ZONE, "--zone", EXAMPLE_ZONE] }, /both hold zone example\.test\.$/);
});

test("an unknown argument or variable is one clear line with the nearest name", async () => {
  await assertOneLine({ args: ["--zon", "x"] }, /^signpost: unknown argument "--zon"; did you mean --zone\?$/);
  await assertOneLine(
    { env: { SVC_DNS_LISTN: "x" } },
    /unknown environment variable SVC_DNS_LISTN; .*SVC_DNS_LISTEN\?$/,
  );
});

test("a port in use or a second instance on the same data is one clear line", async () => {
  await using node = await startNode();
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const inUse = new RegExp(`^signpost: cannot listen on 127.0.0.1:${endpoint.port} \\(UDP\\): another program uses`);
  await assertOneLine({ env: { SVC_DNS_LISTEN: `127.0.0.1:${endpoint.port}` } }, inUse);
  const management = new URL((await node.get("/healthz")).url).host;
  await assertOneLine({ env: { SVC_MANAGEMENT_LISTEN: management } }, /\(management\): another program uses/);
  const data = join(node.directory, "data");
  await assertOneLine({ env: { SVC_NODE_DATA_DIR: data } }, /^signpost: another instance runs on the data directory/);
});

test("a data directory that cannot be made is one clear line", async () => {
  await assertOneLine({ env: { SVC_NODE_DATA_DIR: "/proc/none" } }, /^signpost: cannot make the data directory/);
  await assertOneLine({ env: { SVC_NODE_DATA_DIR: EXAMPLE_ZONE } }, /it is not a directory$/);
});

test("a data directory that others may write to is one clear line, for the offline tools too", async () => {
  const data = join(directory, "open");
  await mkdir(join(data, "store"), { recursive: true, mode: 0o700 });
  const clear = /^signpost: cannot use the data directory: other users may write to \S+; .* chmod go-w \S+$/;
  for (const path of [data, join(data, "store")]) {
    await chmod(path, 0o777);
    for (const args of [["--zone", EXAMPLE_ZONE], ["--reset-admin-password"]]) {
      await assertOneLine({ args, env: { SVC_NODE_DATA_DIR: data } }, clear);
    }
    await chmod(path, 0o700);
  }
});

test("a privileged port without permission is one clear line", async () => {
  const dropping = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
  const command = process.getuid?.() === 0 ? dropping : [];
  const env = { SVC_DNS_LISTEN: "127.0.0.1:1", SVC_NODE_DATA_DIR: join(directory, "unprivileged") };
  await assertOneLine({ command, env }, /^signpost: cannot listen on 127\.0\.0\.1:1 \(UDP\): no permission/);
});

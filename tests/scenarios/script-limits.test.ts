import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { processTree } from "../support/proc.ts";
import { waitFor } from "../support/wait.ts";
import { LONG_MS, openScriptLab, type ScriptLab } from "./script-lab.ts";

/** Enough for every script here to get under way, and short beside LONG_MS. */
const SHORT_MS = 2_000;
/** What a loaded machine may take to end a script. */
const SLACK_MS = 10_000;

async function openLab(context: TestContext): Promise<ScriptLab | undefined> {
  const lab = await openScriptLab(context);
  if (lab !== undefined) context.after(() => lab[Symbol.asyncDispose]());
  return lab;
}

/** Waits until nothing is left below the runner. */
async function untilEmpty(lab: ScriptLab): Promise<void> {
  await waitFor("the end of every process of scripts", LONG_MS, () => processTree(lab.runner().pid).length === 1);
}

async function verdictsAreTold(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test("status 0 is success", async () => {
    const outcome = await lab.run("/usr/bin/true");
    assert.equal(outcome.error, undefined);
    assert.ok(outcome.latencyUs > 0);
  });

  for (const [what, program, expected] of [
    ["another status", "exit 3", /^exit status 3$/],
    [
      "a line on standard error",
      "print STDERR qq(a\\nthe disk is full\\n); exit 2",
      /^exit status 2: the disk is full$/,
    ],
    ["a line on standard output only", "print qq(fine words\\n); exit 2", /^exit status 2$/],
    ["a signal", "kill 15, $$; sleep 60", /signal 15/],
  ] as const) {
    await context.test(`${what} is failure`, async () => {
      const { error, detail } = await lab.perl(program);
      assert.equal(error, "script");
      assert.match(detail ?? "", expected);
    });
  }

  await context.test("arguments arrive as they are, and are not told", async () => {
    const script = lab.script(
      "args",
      `#!/usr/bin/perl\nprint STDERR join("|", @ARGV), "\\n"; exit(@ARGV == 3 && $ARGV[1] eq "" ? 7 : 1);\n`,
    );
    const { detail } = await lab.run(script, ["$(touch /tmp/x) ; hunter2", "", "*"]);
    assert.match(detail ?? "", /^exit status 7: \*\*\*\|\|\*$/);
  });

  await context.test("a command that is not there", async () => {
    const { error, detail } = await lab.run("/usr/bin/no-such-program");
    assert.equal(error, "script");
    assert.match(detail ?? "", /No such file/);
  });
}

async function timeAndProcessesAreBounded(context: TestContext, lab: ScriptLab): Promise<void> {
  for (const [what, program] of [
    ["sleeps", "sleep 600"],
    ["ignores every signal", "$SIG{$_} = 'IGNORE' for qw(TERM INT HUP QUIT ALRM); sleep 1 while 1"],
    ["loops", "1 while 1"],
    ["is a fork bomb", "while (1) { my $p = fork; sleep 600 if defined $p && $p == 0 && rand() < 0.5 }"],
  ] as const) {
    await context.test(`a script that ${what} ends with its time`, async () => {
      const startedAt = performance.now();
      const { error, detail } = await lab.perl(program, SHORT_MS);
      assert.ok(performance.now() - startedAt < SHORT_MS + SLACK_MS);
      // Where the machine is so busy with ending it that no answer comes in time, the runner is to blame: unhealthy, too.
      assert.ok(error === "script" || error === "runner", detail ?? "success");
      await untilEmpty(lab);
      assert.equal((await lab.run("/usr/bin/true")).error, undefined);
    });
  }

  await context.test("no script has more processes than allowed", async () => {
    const program =
      "my $n = 0; while ($n < 500) { my $p = fork; last unless defined $p; if (!$p) { sleep 600 } $n++ } print STDERR qq($n\\n); exit 1";
    const { detail = "" } = await lab.perl(program);
    const count = Number(detail.replace(/^.*: /, ""));
    assert.ok(count >= 10 && count <= 64, detail);
    await untilEmpty(lab);
  });

  await context.test("a daemon that a script leaves behind ends with it", async () => {
    const program = `
      use POSIX qw(setsid);
      unless (fork) { setsid(); unless (fork) { close $_ for *STDIN, *STDOUT, *STDERR; sleep 600; exit } exit }
      wait; exit 0;`;
    const outcome = await lab.perl(program);
    assert.equal(outcome.error, undefined, outcome.detail ?? "");
    await untilEmpty(lab);
  });

  await context.test("a daemon that keeps the output open does not hold up the verdict", async () => {
    const outcome = await lab.perl("unless (fork) { sleep 600; exit } exit 0;");
    assert.equal(outcome.error, undefined, outcome.detail ?? "");
    await untilEmpty(lab);
  });
}

async function memoryAndOutputAreBounded(context: TestContext, lab: ScriptLab): Promise<void> {
  for (const [what, program] of [
    ["one process", "my $x = 'a' x (600 * 1024 * 1024); sleep 600"],
    [
      "many processes",
      "my @p = map { my $p = fork // die; if (!$p) { my $x = 'a' x (40 * 1024 * 1024); sleep 600 } $p } 1..12; sleep 600",
    ],
  ] as const) {
    await context.test(`memory of ${what} is bounded`, async () => {
      const { error, detail } = await lab.perl(program);
      assert.equal(error, "script");
      assert.match(detail ?? "", /too much memory/);
      await untilEmpty(lab);
    });
  }

  for (const [what, program] of [
    ["files of memory", 'my $name = "x\\0"; exit(syscall(319, $name, 0) < 0 ? 3 : 0)'],
    ["System V segments", "exit(defined shmget(0, 4096, 0600 | 512) ? 0 : 3)"],
    ["shared memory without a file", "exit(syscall(9, 0, 4096, 3, 0x21, -1, 0) < 0 ? 3 : 0)"],
    ["shared memory of /dev/zero", 'exit(open(my $zero, "+<", "/dev/zero") ? 0 : 3)'],
  ] as const) {
    // Numbers of calls are those of x64.
    const skip = process.arch !== "x64";
    await context.test(`${what}, which nobody could count, cannot be had`, { skip }, async () => {
      const { detail } = await lab.perl(program);
      assert.match(detail ?? "", /^exit status 3/);
    });
  }

  await context.test("more memory than any one process may ask for is not given", async () => {
    const { error, detail } = await lab.perl("my $n = 4 * 1024 * 1024 * 1024; my $x = 'a' x $n; exit 0");
    assert.equal(error, "script");
    assert.match(detail ?? "", /Out of memory|too much memory/i);
  });

  for (const stream of ["STDOUT", "STDERR"] as const) {
    await context.test(`a script that writes to ${stream} for ever is ended`, async () => {
      const { error, detail } = await lab.perl(`1 while print ${stream} "secret " x 1000, "\\n"`);
      assert.equal(error, "script");
      assert.match(detail ?? "", /wrote more than/);
      await untilEmpty(lab);
    });
  }
}

async function clientsAreServed(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test("many at once wait for each other and all come through", async () => {
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => lab.run("/usr/bin/true")));
    assert.deepEqual(
      outcomes.filter(({ error }) => error !== undefined),
      [],
    );
  });

  await context.test("garbage on the socket ends its connection and nothing else", async () => {
    const path = join(lab.secretDirectory, "..", "socket");
    for (const garbage of ["hello\n", "\0\0\0\n", "x".repeat(3_000_000), `{"kind":"run","id":1}\n`]) {
      const socket = connect(path);
      socket.on("error", () => {});
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.write(garbage);
      socket.resume();
      await closed;
    }
    assert.equal(lab.runner().status(), undefined);
    assert.equal((await lab.run("/usr/bin/true")).error, undefined);
  });

  await context.test("what a client asked for ends when it goes away", async () => {
    const socket = connect(join(lab.secretDirectory, "..", "socket"));
    const request = { kind: "run", id: 1, command: "/usr/bin/sleep", args: ["600"], timeoutMs: 600_000 };
    socket.write(`${JSON.stringify(request)}\n`);
    await waitFor("the script", LONG_MS, () => processTree(lab.runner().pid).length > 3);
    socket.destroy();
    await untilEmpty(lab);
  });
}

async function runnersEnd(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test(
    "a runner that is killed takes its scripts along, fails the checks, and its successor serves them",
    async () => {
      const outcome = lab.run("/usr/bin/sleep", ["600"]);
      const members = await waitFor("the script", LONG_MS, () => {
        const tree = processTree(lab.runner().pid);
        return tree.length > 3 && tree;
      });
      process.kill(lab.runner().pid, "SIGKILL");
      assert.equal((await outcome).error, "runner");
      await waitFor("the end of its scripts", LONG_MS, () => members.every((pid) => !isRunning(pid)));
      const gone = await lab.run("/usr/bin/true");
      assert.equal(gone.error, "runner");
      assert.match(gone.detail ?? "", /not running|ended the connection/);
      await lab.restartRunner();
      assert.equal((await lab.run("/usr/bin/true")).error, undefined);
    },
  );

  await context.test("a runner that stops ends its scripts", async () => {
    const outcome = lab.run("/usr/bin/sleep", ["600"]);
    await waitFor("the script", LONG_MS, () => processTree(lab.runner().pid).length > 3);
    assert.deepEqual(await lab.runner().stop(), { code: 0, signal: null });
    assert.equal((await outcome).error, "runner");
  });
}

test("scripts within their limits", async (context) => {
  const lab = await openLab(context);
  if (lab === undefined) return;
  await verdictsAreTold(context, lab);
  await timeAndProcessesAreBounded(context, lab);
  await memoryAndOutputAreBounded(context, lab);
  await clientsAreServed(context, lab);
  await runnersEnd(context, lab);
});

/** A process that has ended and that nobody has asked about has no command line any more. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1") !== "";
  } catch {
    return false;
  }
}

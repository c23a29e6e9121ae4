/** One script: started behind its walls, watched, ended, and judged. */
import { type ChildProcess, spawn } from "node:child_process";
import { type Readable, Writable } from "node:stream";
import { DETAIL_CHARACTERS_MAX, type ScriptOutcome } from "../base/script-protocol.ts";
import { MEMORY_CHECK_MS, OUTPUT_BYTES_MAX, OUTPUT_KEPT_BYTES } from "./limits.ts";
import { childrenOf, memoryBytesOf } from "./process-tree.ts";
import { limitedCommand, type Sandbox, sandboxArguments } from "./sandbox.ts";

/** Who scripts run as, and with what; found once at the start. */
export type Cell = {
  readonly bwrap: string;
  readonly userId: number;
  readonly groupId: number;
  readonly filter: Uint8Array;
  readonly directory: Sandbox["directory"];
  readonly memoryBytesMax: number;
};

/** Descriptors in the child. */
const FILTER_DESCRIPTOR = 3;
export const EXTRA_DESCRIPTOR = 4;

/**
 * Starts bubblewrap as the user of scripts: from its first instruction on nothing of this process's rights is left. Its
 * environment is empty. `extra` becomes EXTRA_DESCRIPTOR in the sandbox.
 */
export function startInCell(cell: Cell, command: readonly string[], extra?: number): ChildProcess {
  const { bwrap, userId, groupId, filter, directory } = cell;
  const child = spawn(bwrap, sandboxArguments({ directory, filterDescriptor: FILTER_DESCRIPTOR }, command), {
    stdio: ["pipe", "pipe", "pipe", "pipe", ...(extra === undefined ? [] : [extra])],
    env: {},
    cwd: "/",
    // Only root can become somebody, and who is that user already needs not.
    ...(process.geteuid?.() === 0 ? { uid: userId, gid: groupId } : {}),
  });
  const filterPipe = child.stdio[FILTER_DESCRIPTOR];
  // A bwrap that ends before it has read the filter breaks the pipe; its exit tells the story.
  for (const stream of child.stdio) stream?.on("error", () => {});
  if (filterPipe instanceof Writable) filterPipe.end(filter);
  return child;
}

type Ending = "too slow" | "too much output" | "too much memory" | "called off";

const ENDINGS: Readonly<Record<Ending, string>> = {
  "too slow": "it was ended: it did not end in time",
  "too much output": `it was ended: it wrote more than ${OUTPUT_BYTES_MAX} bytes`,
  "too much memory": "it was ended: it took too much memory",
  "called off": "it was ended: the runner stops or cannot hold its sandbox any more",
};

export type ScriptRun = {
  /** An absolute path, as it is seen in the sandbox. */
  readonly command: string;
  readonly args: readonly string[];
  /** From now on. */
  readonly timeoutMs: number;
  /** Ends it at once. */
  readonly callOff: AbortSignal;
};

/** Runs a script to its end, whatever it does. Never rejects; when it settles no process of it is left. */
export function runScript(cell: Cell, run: ScriptRun): Promise<ScriptOutcome> {
  const limited = limitedCommand(Math.ceil(run.timeoutMs / 1000) + 1, [run.command, ...run.args]);
  const startedAt = performance.now();
  const latencyUs = () => Math.round((performance.now() - startedAt) * 1000);
  return new Promise((resolve) => {
    const child = startInCell(cell, limited);
    child.stdin?.end();
    let ending: Ending | undefined;
    const end = (why: Ending) => {
      ending ??= why;
      endSandbox(child);
    };
    const callOff = () => end("called off");
    const deadline = setTimeout(() => end("too slow"), run.timeoutMs);
    const memory = setInterval(() => {
      if (memoryBytesOf(child.pid ?? 0) > cell.memoryBytesMax) end("too much memory");
    }, MEMORY_CHECK_MS);
    run.callOff.addEventListener("abort", callOff);
    if (run.callOff.aborted) callOff();
    const written = collectOutput(child, () => end("too much output"));
    const settle = (outcome: Omit<ScriptOutcome, "latencyUs">) => {
      clearTimeout(deadline);
      clearInterval(memory);
      run.callOff.removeEventListener("abort", callOff);
      resolve({ latencyUs: latencyUs(), ...outcome });
    };
    child.once("error", (error) => settle({ error: "runner", detail: `bwrap cannot be started: ${error.message}` }));
    // Not "exit": the pipes end when the last process that holds them has ended.
    child.once("close", (code, signal) => {
      if (code === 0 && ending === undefined) return settle({});
      if (ending === "called off") return settle({ error: "runner", detail: ENDINGS[ending] });
      // Its own faults begin so. A script that says the same of itself is none the better for it.
      if (ending === undefined && code === 1 && written().startsWith("bwrap: ")) {
        return settle({ error: "runner", detail: written().trim().slice(0, DETAIL_CHARACTERS_MAX) });
      }
      const how = ending === undefined ? exitText(code, signal) : ENDINGS[ending];
      settle({ error: "script", detail: detailOf(how, written(), run.args) });
    });
  });
}

/**
 * The first process of the sandbox takes all others with it. Bubblewrap's own end would end that one too, but not in the
 * moments of its start before it has asked the kernel for that.
 */
export function endSandbox(child: ChildProcess): void {
  for (const processId of childrenOf(child.pid ?? 0)) {
    try {
      process.kill(processId, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
  child.kill("SIGKILL");
}

function exitText(code: number | null, signal: NodeJS.Signals | null): string {
  if (code === null) return `ended by ${signal}`;
  // As a shell: bwrap gives 128 and the signal's number for a command that a signal ended.
  return code > 128 && code < 193 ? `exit status ${code} (signal ${code - 128})` : `exit status ${code}`;
}

/** Counts both outputs and keeps the end of standard error, which is what a failing program says last. */
function collectOutput(child: ChildProcess, onTooMuch: () => void): () => string {
  let bytes = 0;
  let kept = Buffer.alloc(0);
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > OUTPUT_BYTES_MAX) onTooMuch();
  };
  const take = (stream: Readable | null, onChunk: (chunk: Buffer) => void) => stream?.on("data", onChunk);
  take(child.stdout, count);
  take(child.stderr, (chunk) => {
    count(chunk);
    kept = Buffer.concat([kept, chunk]).subarray(-OUTPUT_KEPT_BYTES);
  });
  return () => kept.toString("utf8");
}

/** What is shorter is not taken for a secret: masking every "a" of a line helps nobody. */
const SECRET_CHARACTERS_MIN = 3;
/** What stands between the words of an argument: blanks, and the marks of options, URLs and shells. */
const BETWEEN_WORDS = /[\s=:;,&|<>()@"'`]+/;

/** Arguments and their words: they may be secrets, and programs like to repeat them. The longest first. */
function maskedTexts(args: readonly string[]): string[] {
  const texts = args.flatMap((argument) => [argument, ...argument.split(BETWEEN_WORDS)]);
  const secrets = texts.filter((text) => text.length >= SECRET_CHARACTERS_MIN);
  return [...new Set(secrets)].sort((a, b) => b.length - a.length);
}

/** How it ended, and its last line on standard error, without arguments and control characters. */
export function detailOf(how: string, standardError: string, args: readonly string[]): string {
  const lines = standardError.split("\n").filter((line) => line.trim() !== "");
  let line = lines.at(-1) ?? "";
  for (const text of maskedTexts(args)) line = line.replaceAll(text, "***");
  line = line.replace(/\p{Cc}+/gu, " ").trim();
  return (line === "" ? how : `${how}: ${line}`).slice(0, DETAIL_CHARACTERS_MAX);
}

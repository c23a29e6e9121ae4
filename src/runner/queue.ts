/** Scripts that run and scripts that wait: both bounded, first come, first served. */
import type { ScriptOutcome } from "../base/script-protocol.ts";
import { RUNNING_MAX, WAITING_MAX } from "./limits.ts";
import type { ScriptRun } from "./run-script.ts";

export type QueueOptions = {
  readonly run: (script: ScriptRun) => Promise<ScriptOutcome>;
  /** Why no script may run now, or undefined. */
  readonly refusal: () => Promise<string | undefined>;
  readonly now: () => number;
};

export type ScriptQueue = {
  /** Settles within the script's time-out, but for the moments that its end takes. Never rejects. */
  readonly submit: (script: ScriptRun) => Promise<ScriptOutcome>;
  readonly running: () => number;
};

function refused(detail: string): ScriptOutcome {
  return { latencyUs: 0, error: "runner", detail };
}

export function createScriptQueue({ run, refusal, now }: QueueOptions): ScriptQueue {
  const waiting: (() => void)[] = [];
  let running = 0;
  const begin = async (script: ScriptRun, deadline: number): Promise<ScriptOutcome> => {
    const why = await refusal();
    if (why !== undefined) return refused(`the runner refuses: ${why}`);
    const timeoutMs = Math.floor(deadline - now());
    if (timeoutMs <= 0) return refused("the runner is overloaded: the time was over before its turn came");
    return await run({ ...script, timeoutMs });
  };
  return {
    running: () => running,
    submit: async (script) => {
      const deadline = now() + script.timeoutMs;
      if (running >= RUNNING_MAX) {
        if (waiting.length >= WAITING_MAX) return refused("the runner is overloaded: too many scripts wait");
        // Whoever ends hands over its place, so the count stays as it is.
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else running += 1;
      try {
        if (script.callOff.aborted) return refused("called off");
        return await begin(script, deadline);
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}

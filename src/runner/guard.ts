/** Whether scripts may run: decided anew as often as something could have changed. */
import type { Log } from "../base/log.ts";
import { RULES_CHECK_MS, SELF_TEST_MS, SELF_TEST_RETRY_MS } from "./limits.ts";

export type GuardOptions = {
  /** Each gives what is wrong, or undefined, and never rejects. */
  readonly blockAddresses: () => Promise<string | undefined>;
  readonly testSandbox: () => Promise<string | undefined>;
  /** What ran on trust must end: the trust is gone. */
  readonly onLost: (why: string) => void;
  readonly isBusy: () => boolean;
  readonly log: Log;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
};

export type Guard = Disposable & {
  /** Settles with why no script may run at this moment, or undefined. */
  readonly refusal: () => Promise<string | undefined>;
};

/** A guard that has begun its first test. */
export function createGuard(options: GuardOptions): Guard {
  const { log, now } = options;
  let rulesAt = Number.NEGATIVE_INFINITY;
  let rulesFault: string | undefined;
  let looking: Promise<void> | undefined;
  let testFault: string | undefined = "the sandbox has not been tested yet";
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const lookAtRules = async () => {
    const startedAt = now();
    const fault = await options.blockAddresses();
    rulesAt = startedAt;
    if (fault !== undefined && fault !== rulesFault) log("error", `no script runs: ${fault}`);
    rulesFault = fault;
    if (fault !== undefined) options.onLost(fault);
  };
  const freshRules = () => {
    if (now() - rulesAt < RULES_CHECK_MS) return Promise.resolve();
    looking ??= lookAtRules().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const test = async () => {
    await freshRules();
    const fault = rulesFault ?? (await options.testSandbox());
    if (fault !== undefined && fault !== testFault && fault !== rulesFault) {
      log("error", `no script runs: in the sandbox: ${fault}`);
    }
    if (fault === undefined && testFault !== undefined) log("info", "the sandbox of scripts is as it must be");
    testFault = fault;
    if (fault !== undefined) options.onLost(fault);
    if (!isClosed) timer = setTimeout(() => void test(), fault === undefined ? SELF_TEST_MS : SELF_TEST_RETRY_MS);
  };
  const tested = test();
  // A script that runs for long outlives the look before it.
  const watch = setInterval(() => {
    if (options.isBusy()) void freshRules();
  }, RULES_CHECK_MS);
  return {
    refusal: async () => {
      await tested;
      await freshRules();
      return rulesFault ?? testFault;
    },
    [Symbol.dispose]: () => {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(watch);
    },
  };
}

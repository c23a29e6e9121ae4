import type { MessagePort } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { FAILURE_REPORTS_PER_SECOND } from "./limits.ts";
import type { ListenerThreadMessage } from "./threads.ts";

/** Reports queries whose answering threw to the supervisor. */
export function createFailureReporter(port: MessagePort): (query: Uint8Array, thrown: unknown) => void {
  return limitFailures((query, detail) => {
    const message: ListenerThreadMessage = { kind: "failure", query, detail };
    port.postMessage(message);
  });
}

/** Lets at most FAILURE_REPORTS_PER_SECOND through: a flood of them must not fill memory. */
export function limitFailures(
  report: (query: Uint8Array, detail: string) => void,
): (query: Uint8Array, thrown: unknown) => void {
  let second = 0;
  let reported = 0;
  return (query, thrown) => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) reported = 0;
    second = now;
    reported += 1;
    if (reported <= FAILURE_REPORTS_PER_SECOND) report(query, errorText(thrown));
  };
}

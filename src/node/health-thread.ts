/**
 * The health thread: probes what the control thread names, writes the verdicts where answers are made, and tells the control
 * thread what has changed. It may die: the verdicts stay in shared memory, and its replacement goes on from them.
 */
import { join } from "node:path";
import type { MessagePort } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { type FromHealth, STATUSES_ASKED_MAX, type ToHealth } from "../health/messages.ts";
import type { ProbePolicy } from "../health/probe.ts";
import type { Prober, ProberOptions } from "../health/prober.ts";
import { hashText } from "../health/schedule.ts";
import { createScheduler, type Scheduler } from "../health/scheduler.ts";
import { IN_FLIGHT_MAX } from "../health/scheduler-limits.ts";
import { createScriptClient } from "../health/script-client.ts";
import { forget } from "../health/state-text.ts";
import type { SharedImage } from "../image/shared.ts";
import { createHealthResolver } from "./health-resolver.ts";
import { openHealthStateWriter, readHealthState } from "./health-state-file.ts";
import { HEALTH_DESCRIPTOR_SHARE } from "./limits.ts";
import type { LinkedThreadCommand, LinkedThreadMessage } from "./linked-thread.ts";
import { descriptorLimit } from "./open-files.ts";
import { giveLifeSigns, type NodeStatus } from "./status.ts";

/** `workerData` of the health thread. */
export type HealthData = {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  /** Its place among the readers of the image: it asks the node's own zones. */
  readonly thread: number;
  readonly nodeId: string;
  readonly dataDirectory: string;
  readonly metadataUrl: string;
  /** Of the runner of scripts; undefined where scripts are not enabled. */
  readonly runnerSocket: string | undefined;
  /** False for a replacement. */
  readonly isFirst: boolean;
  /** To the control thread; transferred. */
  readonly port: MessagePort;
};

const STRICTEST_POLICY: ProbePolicy = { allowInsecureAuthenticatedProbes: false, managedIdentityHosts: [] };
/** The name of the file in the data directory. */
export const HEALTH_STATE_FILE = "health-state";

/** Runs until "stop", which leaves what is known in the file. */
export function runHealth(
  data: HealthData,
  supervisor: MessagePort,
  makeProber: (options: ProberOptions) => Prober,
): void {
  const say = (message: LinkedThreadMessage) => supervisor.postMessage(message);
  const log: Log = (level, message, fields = {}) => say({ kind: "log", line: { level, message, fields } });
  const lifeSigns = giveLifeSigns(data.status, "health");
  const path = join(data.dataDirectory, HEALTH_STATE_FILE);
  let policy = STRICTEST_POLICY;
  const scripts =
    data.runnerSocket === undefined
      ? undefined
      : createScriptClient({ socketPath: data.runnerSocket, now: () => performance.now() });
  const prober = makeProber({
    resolveHost: createHealthResolver(data.shared, data.thread),
    metadataUrl: data.metadataUrl,
    policy: () => policy,
    ...(scripts === undefined ? {} : { runScript: scripts.run }),
    now: Date.now,
    monotonicMs: () => performance.now(),
  });
  const remembered = readHealthState(path, Date.now(), log);
  let control = data.port;
  const tell = (message: FromHealth) => control.postMessage(message);
  const scheduler = createScheduler({
    clock: {
      now: () => performance.now(),
      wallMs: Date.now,
      after: (delayMs, callback) => {
        const timer = setTimeout(callback, delayMs);
        return () => clearTimeout(timer);
      },
    },
    words: new Int32Array(data.shared.health),
    run: prober.run,
    seed: hashText(data.nodeId, 0),
    inFlightMax: Math.min(IN_FLIGHT_MAX, Math.floor(descriptorLimit() * HEALTH_DESCRIPTOR_SHARE)),
    remembered,
    onTransitions: (transitions) => tell({ kind: "transitions", transitions }),
    log,
  });
  const states = () => {
    forget(remembered, Date.now());
    return scheduler.states();
  };
  const file = openHealthStateWriter(path, { ...scheduler, states }, log);
  const hear = (message: ToHealth) => {
    if (message.kind === "policy") policy = message.policy;
    else obey(scheduler, message, tell);
  };
  control.on("message", hear);
  if (!data.isFirst) tell({ kind: "ready" });
  supervisor.on("message", (command: LinkedThreadCommand) => {
    control.close();
    if (command.kind === "control-port") {
      control = command.port;
      control.on("message", hear);
      return;
    }
    scheduler.close();
    prober.close();
    scripts?.close();
    file.close();
    lifeSigns[Symbol.dispose]();
    supervisor.close();
  });
  say({ kind: "running" });
}

function obey(
  scheduler: Scheduler,
  message: Exclude<ToHealth, { readonly kind: "policy" }>,
  tell: (message: FromHealth) => void,
): void {
  switch (message.kind) {
    case "begin":
      scheduler.begin();
      break;
    case "complete":
      scheduler.complete();
      break;
    case "probes": {
      scheduler.stop(message.stop);
      const states = scheduler.start(message.start);
      if (states.length > 0) tell({ kind: "known", states });
      break;
    }
    case "ask":
      tell({ kind: "told", id: message.id, statuses: scheduler.statuses(message.keys.slice(0, STATUSES_ASKED_MAX)) });
      break;
    case "ask-figures":
      tell({ kind: "told-figures", id: message.id, figures: scheduler.figures() });
      break;
  }
}

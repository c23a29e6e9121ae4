/** What the supervisor and the listener threads say to each other. */
import type { MessagePort } from "node:worker_threads";
import type { AnswererOptions } from "../answer/answerer.ts";
import type { LogLine } from "../base/log.ts";
import type { SharedImage } from "../image/shared.ts";
import type { Address } from "./address.ts";

/** A socket that a thread serves; without a descriptor the thread binds the address itself. */
export type ThreadSocket = { readonly address: Address; readonly descriptor: number | undefined };

/** What an answerer needs to know of the configuration. */
export type AnswerOptions = Pick<AnswererOptions, "nodeId" | "maxUdpSize" | "tcpIdleSeconds" | "clientSubnetSources">;

/** `workerData` of a listener thread. `thread` is its place among the readers of the image. */
export type ListenerThreadData = {
  readonly shared: SharedImage;
  readonly thread: number;
  readonly sockets: readonly ThreadSocket[];
  readonly options: AnswerOptions;
};

/** `workerData` of one with an event loop, to which answers to what it has handed over come back. */
export type LoopThreadData = ListenerThreadData & {
  /** How often it was started before. */
  readonly start: number;
  /** From the thread that resolves; transferred. */
  readonly resolvePort: MessagePort;
};

export type ListenerThreadMessage =
  /** What arrives from now on is answered. */
  | { readonly kind: "serving" }
  | { readonly kind: "log"; readonly line: LogLine }
  /** Answering this query threw. */
  | { readonly kind: "failure"; readonly query: Uint8Array; readonly detail: string };

/** A batch thread does not hear it: it reads the image's STOP word. */
export type SupervisorMessage =
  | { readonly kind: "stop" }
  /** The thread that resolves was replaced. */
  | { readonly kind: "resolve-port"; readonly port: MessagePort };

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Endpoint } from "../support/dns-client.ts";
import { type Child, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";

export const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const FAULTY_MAIN = fileURLToPath(new URL("./faults/main.ts", import.meta.url));
export const EXAMPLE_ZONE = fileURLToPath(new URL("../vectors/example.test.zone", import.meta.url));

const START_MS = 20_000;

export type NodeSetup = {
  /** Paths of zone files; default: the example zone. */
  readonly zones?: readonly string[];
  /** Default: one IPv4 loopback address with a port that the system chooses. */
  readonly listen?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly main?: string;
};

/** A node in a child process. */
export type ScenarioNode = {
  readonly child: Child;
  /** Where it serves DNS, in the order of `listen`. */
  readonly dns: readonly Required<Endpoint>[];
  readonly directory: string;
  /** The messages of its log so far. */
  readonly messages: () => readonly string[];
  /** GET of a path of the management listener. */
  readonly get: (path: string, init?: RequestInit) => Promise<Response>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

function messagesOf(output: string): string[] {
  const lines = output.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
  return lines.map((line) => String(JSON.parse(line).msg));
}

function endpointFrom(text: string): Required<Endpoint> {
  const colon = text.lastIndexOf(":");
  return { address: text.slice(0, colon).replace(/[[\]]/g, ""), port: Number(text.slice(colon + 1)) };
}

/** Environment of a node that takes nothing from this process and no port that is in use. */
export function nodeEnvironment(directory: string, setup: NodeSetup = {}): Record<string, string> {
  return {
    SVC_NODE_DATA_DIR: join(directory, "data"),
    SVC_DNS_LISTEN: setup.listen ?? "127.0.0.1:0",
    SVC_DNS_THREADS: "1",
    SVC_MANAGEMENT_LISTEN: "127.0.0.1:0",
    SVC_API_LISTEN: "127.0.0.1:0",
    SVC_LOG_FORMAT: "json",
    ...setup.env,
  };
}

export function zoneArguments(zones: readonly string[] = [EXAMPLE_ZONE]): string[] {
  return zones.flatMap((zone) => ["--zone", zone]);
}

/** Starts a node and waits until it says that it serves. */
export async function startNode(setup: NodeSetup = {}): Promise<ScenarioNode> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-scenario-"));
  const child = await startChild("node", process.execPath, [setup.main ?? MAIN, ...zoneArguments(setup.zones)], {
    env: nodeEnvironment(directory, setup),
  });
  return await adoptNode(child, directory);
}

/** Waits until a node that has been started serves; it is stopped and its directory removed at the end. */
export async function adoptNode(child: Child, directory: string): Promise<ScenarioNode> {
  const messages = () => messagesOf(child.output());
  const found = (pattern: RegExp) => messages().flatMap((message) => pattern.exec(message)?.[1] ?? []);
  const dispose = async () => {
    if (child.status() === undefined) await child.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await waitFor("the node serves", START_MS, () => {
      if (child.status() !== undefined) throw new Error("the node ended at its start");
      return found(/^(try: |no zone is served)/).length > 0;
    });
  } catch (error) {
    const output = child.output();
    await dispose();
    throw new Error(`${String(error)}\n${output}`);
  }
  const management = found(/^health and metrics on (.*)$/)[0] ?? "";
  return {
    child,
    dns: found(/^DNS on (.*), UDP and TCP$/).map(endpointFrom),
    directory,
    messages,
    get: (path, init) => fetch(`${management}${path}`, init),
    [Symbol.asyncDispose]: dispose,
  };
}

import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Endpoint } from "../support/dns-client.ts";
import { type Child, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";

export const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const FAULTY_MAIN = fileURLToPath(new URL("./faults/main.ts", import.meta.url));
/** It waits for upstreams long enough that each question is asked once, however busy the machine is. */
export const PATIENT_MAIN = fileURLToPath(new URL("./faults/patient-main.ts", import.meta.url));
export const EXAMPLE_ZONE = fileURLToPath(new URL("../vectors/example.test.zone", import.meta.url));

const START_MS = 20_000;

/** The password that every node of a scenario gives its first admin. */
export const ADMIN_PASSWORD = "password of the first admin";

export type NodeSetup = {
  /** Paths of zone files; default: the example zone. */
  readonly zones?: readonly string[];
  /** Default: one IPv4 loopback address with a port that the system chooses. */
  readonly listen?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly main?: string;
  /** null: none is configured. */
  readonly adminPassword?: null;
  /** Kept at the end, for a further node on the same data. */
  readonly directory?: string;
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
  /** Base URL of the API, "https://127.0.0.1:49153". */
  readonly api: string;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** The last line may still be on its way. */
function messagesOf(output: string): string[] {
  const lines = output.split("\n").slice(0, -1);
  const whole = lines.filter((line) => line.startsWith("{") && line.endsWith("}"));
  return whole.map((line) => String(JSON.parse(line).msg));
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
    ...(setup.adminPassword === null ? {} : { SVC_AUTH_INITIAL_ADMIN_PASSWORD: ADMIN_PASSWORD }),
    ...setup.env,
  };
}

export function zoneArguments(zones: readonly string[] = [EXAMPLE_ZONE]): string[] {
  return zones.flatMap((zone) => ["--zone", zone]);
}

/** Starts a node and waits until it says that it serves. */
export async function startNode(setup: NodeSetup = {}): Promise<ScenarioNode> {
  const directory = setup.directory ?? (await mkdtemp(join(tmpdir(), "signpost-scenario-")));
  const child = await startChild("node", process.execPath, [setup.main ?? MAIN, ...zoneArguments(setup.zones)], {
    env: nodeEnvironment(directory, setup),
  });
  return await adoptNode(child, directory, setup.directory === undefined);
}

/** Tells a node that waits for something from one that the machine had no time for; of one that has ended nobody knows. */
function effortOf(child: Child): string {
  if (child.status() !== undefined) return "";
  const { userMs, systemMs } = child.cpu();
  return `processor time: ${userMs + systemMs} ms; load: ${loadavg().map(Math.round).join(" ")}`;
}

/** Waits until a node that has been started serves; it is stopped at the end, and its directory removed. */
export async function adoptNode(child: Child, directory: string, removes = true): Promise<ScenarioNode> {
  const messages = () => messagesOf(child.output());
  const found = (pattern: RegExp) => messages().flatMap((message) => pattern.exec(message)?.[1] ?? []);
  const dispose = async () => {
    if (child.status() === undefined) await child.stop();
    if (removes) await rm(directory, { recursive: true, force: true });
  };
  try {
    await waitFor("the node serves", START_MS, () => {
      if (child.status() !== undefined) throw new Error("the node ended at its start");
      return found(/^(try: |no zone is served)/).length > 0;
    });
  } catch (error) {
    const why = `${String(error)}\n${effortOf(child)}\n${child.output()}`;
    await dispose();
    throw new Error(why);
  }
  const management = found(/^health and metrics on (.*)$/)[0] ?? "";
  return {
    child,
    dns: found(/^DNS on (.*), UDP and TCP$/).map(endpointFrom),
    directory,
    messages,
    get: (path, init) => fetch(`${management}${path}`, init),
    api: found(/^API and its documentation on (.*)$/)[0] ?? "",
    [Symbol.asyncDispose]: dispose,
  };
}

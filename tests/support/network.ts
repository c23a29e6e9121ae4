import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { requireProgram, requireRoot } from "./peers.ts";
import { type Child, runToEnd, startChild } from "./process.ts";

const TOOL_MS = 20_000;

/**
 * A network of its own with two machines, in which a test may have any address: "here" has 10.77.0.1 and fd77::1, "there"
 * is its gateway and has all that the test gives it. Nothing of it touches the network of this machine.
 */
export type LabNetwork = AsyncDisposable & {
  /** Command and arguments that run a program on one of the machines. */
  readonly on: (machine: "here" | "there", command: readonly string[]) => readonly [string, ...string[]];
  /** Runs a program there to its end; its output. Throws when it fails. */
  readonly run: (machine: "here" | "there", ...command: readonly string[]) => Promise<string>;
  readonly start: (machine: "here" | "there", name: string, command: readonly string[]) => Promise<Child>;
};

/** The network, or undefined after skipping the test loudly. `addresses`: what "there" has, such as "192.0.2.1/32". */
export async function openLabNetwork(test: TestContext, addresses: readonly string[]): Promise<LabNetwork | undefined> {
  const ip = requireProgram(test, "ip");
  if (ip === undefined || requireProgram(test, "nsenter") === undefined || !requireRoot(test)) return undefined;
  const id = randomBytes(3).toString("hex");
  const names = { here: `signpost-${id}-h`, there: `signpost-${id}-t` } as const;
  const on = (machine: "here" | "there", command: readonly string[]): readonly [string, ...string[]] => [
    "nsenter",
    `--net=/run/netns/${names[machine]}`,
    "--",
    ...command,
  ];
  const run = async (machine: "here" | "there", ...command: readonly string[]) => {
    const [program, ...args] = on(machine, command);
    return await runToEnd(program, args, TOOL_MS);
  };
  const network: LabNetwork = {
    on,
    run,
    start: async (machine, name, command) => {
      const [program, ...args] = on(machine, command);
      return await startChild(name, program, args);
    },
    [Symbol.asyncDispose]: async () => {
      for (const name of Object.values(names)) await runToEnd(ip, ["netns", "del", name], TOOL_MS);
    },
  };
  for (const name of Object.values(names)) await runToEnd(ip, ["netns", "add", name], TOOL_MS);
  try {
    await run("here", ip, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", names.there);
    for (const machine of ["here", "there"] as const) {
      const last = machine === "here" ? 1 : 2;
      await run(machine, ip, "link", "set", "lo", "up");
      await run(machine, ip, "address", "add", `10.77.0.${last}/24`, "dev", "wire");
      await run(machine, ip, "address", "add", `fd77::${last}/64`, "dev", "wire", "nodad");
      await run(machine, ip, "link", "set", "wire", "up");
    }
    await run("here", ip, "route", "add", "default", "via", "10.77.0.2");
    await run("here", ip, "-6", "route", "add", "default", "via", "fd77::2");
    for (const address of addresses) await run("there", ip, "address", "add", address, "dev", "wire", "nodad");
  } catch (error) {
    await network[Symbol.asyncDispose]();
    throw error;
  }
  return network;
}

/**
 * Nodes on a network whose faults a test chooses. This process moves into a network namespace of its own and is the router
 * there; each node has a namespace with one cable to it. What nodes send to each other passes the router, where it is let
 * through, dropped, or dropped by chance; what the test asks a node does not, so that API and DNS of each node are reached
 * all the time. No tool of the packet filter is needed: rules of routing drop, and a TUN device brings packets to where
 * chance decides. Nothing of it touches the network of this machine.
 */
import { randomBytes } from "node:crypto";
import { closeSync, openSync, read, writeFileSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { adoptNode, MAIN, nodeEnvironment } from "../scenarios/running-node.ts";
import { requireDevice, requireProgram, requireRoot } from "../support/peers.ts";
import { runToEnd, startChild } from "../support/process.ts";
import { CLUSTER_KEY, type ClusterNode, untilReady } from "./cluster-world.ts";

const TOOL_MS = 20_000;
const TUN = "/dev/net/tun";
const CLONE_NEWNET = 0x40000000;
const TUNSETIFF = 0x400454ca;
/** IFF_TUN and IFF_NO_PI: whole IP packets and nothing else. */
const TUN_FLAGS = 0x1001;
const INTERFACE_REQUEST_BYTES = 40;
const PACKET_BYTES_MAX = 65_536;
const LOSSY_TABLE = "77";

export type SplitNetwork = AsyncDisposable & {
  readonly nodes: readonly ClusterNode[];
  /** Ends what reigned before. Nodes are told by their places: [[0, 1], [2]] has two parts that do not hear each other. */
  readonly split: (parts: readonly (readonly number[])[]) => Promise<void>;
  /** No datagram of the membership passes; TCP does. */
  readonly loseUdp: () => Promise<void>;
  /** No TCP of that node passes, in either direction; the datagrams of the membership do. */
  readonly loseTcp: (place: number) => Promise<void>;
  /** Each packet between nodes is lost with that probability. */
  readonly lose: (share: number) => Promise<void>;
  /** Everything passes again. */
  readonly heal: () => Promise<void>;
  /** Packets that chance decided about. */
  readonly figures: () => { readonly passed: number; readonly lost: number };
};

type Kernel = {
  readonly unshare: (flags: number) => number;
  readonly ioctl: (descriptor: number, request: number, value: Uint8Array) => number;
};

function openKernel(): Kernel {
  const koffi: typeof import("koffi") = createRequire(import.meta.url)("koffi");
  const library = koffi.load(null);
  return {
    unshare: library.func("unshare", "int", ["int"]),
    ioctl: library.func("int ioctl(int, unsigned long, _Inout_ uint8_t *)"),
  };
}

const ip = (...words: readonly string[]) => runToEnd("ip", words, TOOL_MS);

/** A TUN device whose packets come back to the router, or do not. Deleting the device ends it. */
function openChance(kernel: Kernel) {
  const figures = { passed: 0, lost: 0 };
  let share = 0;
  const descriptor = openSync(TUN, "r+");
  const request = new Uint8Array(INTERFACE_REQUEST_BYTES);
  request.set(Buffer.from("chance"));
  new DataView(request.buffer).setUint16(16, TUN_FLAGS, true);
  if (kernel.ioctl(descriptor, TUNSETIFF, request) !== 0) throw new Error("a TUN device cannot be made");
  const packet = Buffer.alloc(PACKET_BYTES_MAX);
  const ended = Promise.withResolvers<void>();
  const next = (): void => {
    read(descriptor, packet, 0, packet.length, null, (error, length) => {
      if (error !== null) {
        closeSync(descriptor);
        return ended.resolve();
      }
      if (Math.random() < share) figures.lost++;
      else {
        figures.passed++;
        writeSync(descriptor, packet, 0, length);
      }
      next();
    });
  };
  return {
    begin: next,
    ended: ended.promise,
    setShare: (wanted: number) => {
      share = wanted;
    },
    figures: () => ({ ...figures }),
  };
}

const router = (place: number) => `10.78.${place + 1}.254`;
const host = (place: number) => `10.78.${place + 1}.1`;
const network = (place: number) => `10.78.${place + 1}.0/24`;

async function connect(names: readonly string[]): Promise<void> {
  await ip("link", "set", "lo", "up");
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  for (const file of ["all", "default"]) writeFileSync(`/proc/sys/net/ipv4/conf/${file}/rp_filter`, "0");
  for (const [place, name] of names.entries()) {
    const cable = `cable${place}`;
    await ip("netns", "add", name);
    await ip("link", "add", cable, "type", "veth", "peer", "name", "wire", "netns", name);
    await ip("address", "add", `${router(place)}/24`, "dev", cable);
    await ip("link", "set", cable, "up");
    await ip("-n", name, "link", "set", "lo", "up");
    await ip("-n", name, "address", "add", `${host(place)}/24`, "dev", "wire");
    await ip("-n", name, "link", "set", "wire", "up");
    await ip("-n", name, "route", "add", "default", "via", router(place));
  }
  await ip("link", "set", "chance", "up");
  await ip("route", "add", "default", "dev", "chance", "table", LOSSY_TABLE);
}

/** Rules of the router, which has none but these beside the kernel's own. */
function createRules() {
  let present: readonly (readonly string[])[] = [];
  return async (wanted: readonly (readonly string[])[]) => {
    for (const rule of wanted) await ip("rule", "add", ...rule);
    for (const rule of present) await ip("rule", "del", ...rule);
    present = wanted;
  };
}

async function startNodes(names: readonly string[], directory: string, env: Readonly<Record<string, string>>) {
  const nodes = names.map(async (name, place): Promise<ClusterNode> => {
    const id = String.fromCharCode(97 + place);
    const folder = join(directory, id);
    const peers = `${host(place)}:7946`;
    const others = place === 0 ? {} : { SVC_REPLICATION_JOIN: `${host(0)}:7946` };
    const child = await startChild(
      `node ${id}`,
      "nsenter",
      [`--net=/run/netns/${name}`, "--", process.execPath, MAIN],
      {
        env: {
          ...nodeEnvironment(folder, { listen: `${host(place)}:53`, ...(place > 0 && { adminPassword: null }) }),
          ...{ SVC_API_LISTEN: `${host(place)}:8443`, SVC_MANAGEMENT_LISTEN: `${host(place)}:8080`, SVC_NODE_ID: id },
          ...{ SVC_REPLICATION_LISTEN: peers, SVC_REPLICATION_ENCRYPT_KEY: CLUSTER_KEY, ...others, ...env },
        },
      },
    );
    const node = await adoptNode(child, folder, false);
    await untilReady(node);
    return { ...node, id, peers };
  });
  const ended = await Promise.allSettled(nodes);
  return ended.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}

/** So many nodes, all ready, named a, b, c, ...; undefined after skipping the test loudly. Once in a process. */
export async function openSplitNetwork(
  test: TestContext,
  count: number,
  env: Readonly<Record<string, string>> = {},
): Promise<SplitNetwork | undefined> {
  const isPossible = requireProgram(test, "ip") !== undefined && requireProgram(test, "nsenter") !== undefined;
  if (!isPossible || !requireRoot(test) || !requireDevice(test, TUN)) return undefined;
  await using stack = new AsyncDisposableStack();
  const kernel = openKernel();
  if (kernel.unshare(CLONE_NEWNET) !== 0) throw new Error("this process cannot have a network of its own");
  const chance = openChance(kernel);
  const id = randomBytes(3).toString("hex");
  const names = Array.from({ length: count }, (_, place) => `signpost-${id}-${place}`);
  const places = names.map((_, place) => place);
  const pairs = places.flatMap((one) => places.filter((other) => other !== one).map((other) => [one, other] as const));
  stack.defer(async () => {
    for (const name of names) await runToEnd("ip", ["netns", "del", name], TOOL_MS).catch(() => undefined);
    await ip("link", "del", "chance");
    await chance.ended;
  });
  await connect(names);
  chance.begin();
  const directory = stack.adopt(await mkdtemp(join(tmpdir(), "signpost-split-")), (path) =>
    rm(path, { recursive: true, force: true }),
  );
  const nodes = await startNodes(names, directory, env);
  for (const node of nodes) stack.use(node);
  const rule = createRules();
  const between = (one: number, other: number) => ["iif", `cable${one}`, "to", network(other)];
  const all = stack.move();
  return {
    nodes,
    split: (parts) => {
      const partOf = (place: number) => parts.findIndex((part) => part.includes(place));
      const apart = pairs.filter(([one, other]) => partOf(one) !== partOf(other));
      return rule(apart.map(([one, other]) => [...between(one, other), "blackhole"]));
    },
    loseUdp: () => rule(pairs.map(([one, other]) => [...between(one, other), "ipproto", "udp", "blackhole"])),
    loseTcp: (place) => {
      const its = pairs.filter((pair) => pair.includes(place));
      return rule(its.map(([one, other]) => [...between(one, other), "ipproto", "tcp", "blackhole"]));
    },
    lose: (share) => {
      chance.setShare(share);
      return rule(pairs.map(([one, other]) => [...between(one, other), "lookup", LOSSY_TABLE]));
    },
    heal: () => rule([]),
    figures: chance.figures,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

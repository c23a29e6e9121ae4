/** Who is known, oneself first, and whose turn it is to be probed and to hear gossip. It is the membership's alone. */
import type { Member } from "./member.ts";
import type { Endpoint, Versions } from "./messages.ts";
import { MEMBERS_MAX } from "./settings.ts";
import type { Suspicion } from "./suspicion.ts";

export type Node = {
  readonly name: string;
  endpoint: Endpoint;
  meta: Uint8Array;
  versions: Versions;
  incarnation: number;
  state: Member["state"];
  sinceMs: number;
  /** Where it is suspected. */
  suspicion: Suspicion | undefined;
};

export type NodeTable = {
  readonly self: Node;
  readonly get: (name: string) => Node | undefined;
  /** False where the table is full of members that are alive; else who has been dead the longest makes room. */
  readonly add: (node: Node) => boolean;
  readonly remove: (name: string) => void;
  readonly all: () => IterableIterator<Node>;
  /** All others that are alive or suspected. */
  readonly live: () => readonly Node[];
  /** All that died; those that left are none of them. */
  readonly dead: () => readonly Node[];
  /** The live and oneself. */
  readonly count: () => number;
  /** After a change of anybody's state. */
  readonly changed: () => void;
  /** The live member whose name follows one's own: everybody is somebody's successor, and so nobody waits for its turn. */
  readonly successor: () => Node | undefined;
  /** Another live member, each once a round in an order by chance; undefined where the successor is the only one. */
  readonly nextInRound: () => Node | undefined;
  /** At most `count` live ones by chance, without those that `omit` names. */
  readonly some: (count: number, omit: string) => readonly Node[];
};

export function isLive({ state }: Pick<Node, "state">): boolean {
  return state === "alive" || state === "suspect";
}

/** A port and an address that can be sent to; all zeros is no address of anybody. */
export function isReachable({ address, port }: Endpoint): boolean {
  if ((address.length !== 4 && address.length !== 16) || port < 1 || port > 65_535) return false;
  return address.some((byte) => byte !== 0);
}

export function sameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.port === other.port && sameBytes(one.address, other.address);
}

export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** Fisher and Yates, in place, as far as the first `count`. */
export function shuffle<Value>(values: Value[], random: () => number, count = values.length): Value[] {
  for (let at = 0; at < Math.min(count, values.length - 1); at++) {
    const other = at + Math.floor(random() * (values.length - at));
    const value = values[at]!;
    values[at] = values[other]!;
    values[other] = value;
  }
  return values;
}

function nextByName(self: Node, live: readonly Node[]): Node | undefined {
  let first: Node | undefined;
  let next: Node | undefined;
  for (const node of live) {
    if (first === undefined || node.name < first.name) first = node;
    if (node.name > self.name && (next === undefined || node.name < next.name)) next = node;
  }
  return next ?? first;
}

export function createNodeTable(self: Node, random: () => number): NodeTable {
  const nodes = new Map<string, Node>([[self.name, self]]);
  let live: Node[] | undefined;
  let dead: Node[] = [];
  let successor: Node | undefined;
  let round: string[] = [];
  /** All of it is made anew only after a change. */
  const others = (): readonly Node[] => {
    if (live === undefined) {
      live = [...nodes.values()].filter((node) => node !== self && isLive(node));
      dead = [...nodes.values()].filter(({ state }) => state === "dead");
      successor = nextByName(self, live);
    }
    return live;
  };
  const changed = (): void => {
    live = undefined;
  };
  const remove = (name: string): void => {
    nodes.delete(name);
    changed();
  };
  const makeRoom = (): boolean => {
    let oldest: Node | undefined;
    for (const node of nodes.values()) {
      if (isLive(node) || node === self) continue;
      if (oldest === undefined || node.sinceMs < oldest.sinceMs) oldest = node;
    }
    if (oldest !== undefined) remove(oldest.name);
    return oldest !== undefined;
  };

  return {
    self,
    get: (name) => nodes.get(name),
    add: (node) => {
      if (nodes.size >= MEMBERS_MAX && !makeRoom()) return false;
      nodes.set(node.name, node);
      // A new member comes up in this round, at a place by chance.
      round.splice(Math.floor(random() * (round.length + 1)), 0, node.name);
      changed();
      return true;
    },
    remove,
    all: () => nodes.values(),
    live: others,
    dead: () => {
      others();
      return dead;
    },
    count: () => others().length + 1,
    changed,
    successor: () => {
      others();
      return successor;
    },
    nextInRound: () => {
      const candidates = others();
      if (candidates.length < 2) return undefined;
      for (let rounds = 0; rounds < 2; rounds++) {
        for (let name = round.pop(); name !== undefined; name = round.pop()) {
          const node = nodes.get(name);
          if (node !== undefined && node !== successor && isLive(node)) return node;
        }
        const names = candidates.map(({ name }) => name);
        round = shuffle(names, random);
      }
      return undefined;
    },
    some: (count, omit) => {
      const candidates = others().filter(({ name }) => name !== omit);
      return shuffle(candidates, random, count).slice(0, count);
    },
  };
}

/** A client as resolvers are: it asks one server, and the next one where nothing has come within a second. */
import { type DnsClient, openUdpClient } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import type { ClusterNode } from "./cluster-world.ts";

const PAUSE_MS = 5;
const NEXT_SERVER_MS = 1_000;
/** Times round all servers until a query counts as lost. */
const ROUNDS = 2;

export type FailoverClient = AsyncDisposable & {
  /** Answers so far. */
  readonly answered: () => number;
  /** Queries of which the first server was silent. */
  readonly failedOver: () => number;
  /** What was not as it has to be: "lost NAME", or what came in place of the answer. */
  readonly faults: readonly string[];
};

/** Asks for the addresses of `name` again and again, each time at another server first, whatever becomes of those before. */
export async function startFailoverClient(
  nodes: readonly ClusterNode[],
  name: string,
  isRight: (addresses: readonly string[]) => boolean,
): Promise<FailoverClient> {
  const servers = await Promise.all(
    nodes.flatMap(({ dns: [first] }) => (first === undefined ? [] : [first])).map((one) => openUdpClient(one)),
  );
  const query = encodeQuery({ name, type: 1 });
  const faults: string[] = [];
  const state = { answered: 0, failedOver: 0 };
  const askOne = async (first: number) => {
    for (let attempt = 0; attempt < ROUNDS * servers.length; attempt++) {
      const server = servers[(first + attempt) % servers.length];
      const response = await patiently(server, query);
      if (response === undefined) {
        if (attempt === 0) state.failedOver++;
        continue;
      }
      const { rcode, answer } = decodeMessage(response);
      const addresses = answer.map(({ rdata }) => [...Buffer.from(rdata, "hex")].join("."));
      if (rcode !== 0 || !isRight(addresses)) faults.push(`rcode ${rcode}, ${addresses.join(" ") || "nothing"}`);
      state.answered++;
      return;
    }
    faults.push(`lost ${name}`);
  };
  const running = new Set<Promise<void>>();
  let turn = 0;
  const timer = setInterval(() => {
    const asked = askOne(turn++).finally(() => running.delete(asked));
    running.add(asked);
  }, PAUSE_MS);
  return {
    answered: () => state.answered,
    failedOver: () => state.failedOver,
    faults,
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      await Promise.all(running);
      for (const server of servers) server.close();
    },
  };
}

/** An error of the network is silence: it may only say that the port is closed at this moment. */
async function patiently(server: DnsClient | undefined, query: Uint8Array): Promise<Buffer | undefined> {
  return await server?.ask(query, NEXT_SERVER_MS);
}

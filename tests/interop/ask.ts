import { type DnsClient, openTcpClient, openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import type { RunningServer } from "../support/server.ts";
import { type Aspects, aspectsOf } from "./aspects.ts";
import { type Inquiry, inquiryText } from "./zone-questions.ts";

/** Questions under way at once; few enough for the receive buffer of any server. */
const WINDOW = 32;
/** Silence is asked about again, and longer, so that what a busy machine loses or delays is not taken for it. */
const TIMEOUTS_MS = [1_000, 5_000];

async function askOne(client: DnsClient, message: Uint8Array): Promise<Buffer | undefined> {
  for (const timeoutMs of TIMEOUTS_MS) {
    const response = await client.ask(message, timeoutMs);
    if (response !== undefined) return response;
  }
  return undefined;
}

/** A client over TCP that asks again by a new connection: servers end one that was idle for long, as it is on a busy machine. */
function reopeningTcpClient(server: Pick<RunningServer, "port">): DnsClient {
  let current: DnsClient | undefined;
  return {
    ask: async (message, timeoutMs) => {
      current ??= await openTcpClient(server);
      const response = await current.ask(message, timeoutMs);
      if (response !== undefined) return response;
      current.close();
      current = undefined;
      return undefined;
    },
    close: () => current?.close(),
  };
}

/** Asks one server everything and gives the aspects of its responses in the order of the questions. */
export async function askAll(
  server: Pick<RunningServer, "name" | "port">,
  inquiries: readonly Inquiry[],
): Promise<Aspects[]> {
  const udp = await openUdpClient(server);
  const tcpClients: DnsClient[] = [];
  const results = new Array<Aspects>(inquiries.length);
  let next = 0;
  const worker = async () => {
    const tcp = reopeningTcpClient(server);
    tcpClients.push(tcp);
    while (next < inquiries.length) {
      const index = next;
      next += 1;
      const inquiry = inquiries[index]!;
      const response = await askOne(inquiry.transport === "udp" ? udp : tcp, encodeQuery(inquiry));
      try {
        results[index] = aspectsOf(response);
      } catch (error) {
        throw new Error(`${server.name}, ${inquiryText(inquiry)}: ${String(error)}: ${response?.toString("hex")}`);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: WINDOW }, worker));
  } finally {
    for (const client of [udp, ...tcpClients]) client.close();
  }
  return results;
}

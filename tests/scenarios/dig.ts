import type { Endpoint } from "../support/dns-client.ts";
import { runToEnd } from "../support/process.ts";

/** What `dig` prints, in short form and trimmed, for arguments behind the server's. */
export async function dig({ address, port }: Required<Endpoint>, ...words: string[]): Promise<string> {
  const output = await runToEnd(
    "dig",
    [`@${address}`, "-p", String(port), "+tries=1", "+time=20", "+short", ...words],
    60_000,
  );
  return output.trim();
}

/** Listener addresses where no descriptors can be handed to threads: checked here, bound by the threads themselves. */
import { once } from "node:events";
import { createServer } from "node:net";
import { type Address, hostText } from "./address.ts";
import { bindFailure, type Listener } from "./sockets.ts";
import { openDgramSocket } from "./udp-dgram.ts";

/** Proves that every address is free and finds the port that stands for port 0. Throws OperatorError. */
export async function probeListeners(addresses: readonly Address[]): Promise<readonly Listener[]> {
  const listeners: Listener[] = [];
  for (const address of addresses) listeners.push({ address: await probe(address), udp: [], tcp: undefined });
  return listeners;
}

async function probe(address: Address): Promise<Address> {
  const server = createServer();
  const socket = openDgramSocket(address);
  let chosen = address;
  try {
    server.listen({ host: hostText(address), port: address.port, ipv6Only: true });
    await once(server, "listening");
    const bound = server.address();
    if (bound !== null && typeof bound === "object") chosen = { bytes: address.bytes, port: bound.port };
  } catch (error) {
    throw bindFailure("TCP", address, error);
  }
  try {
    socket.bind({ address: hostText(chosen), port: chosen.port, exclusive: true });
    await once(socket, "listening");
    return chosen;
  } catch (error) {
    throw bindFailure("UDP", chosen, error);
  } finally {
    socket.close();
    server.close();
    await once(server, "close");
  }
}

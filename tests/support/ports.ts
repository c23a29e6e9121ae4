import { createSocket } from "node:dgram";
import { createServer } from "node:net";

async function isFreeOverUdp(port: number, address: string): Promise<boolean> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  return await new Promise((resolve) => {
    socket.once("error", () => resolve(false));
    socket.bind({ port, address, exclusive: true }, () => socket.close(() => resolve(true)));
  });
}

async function freeTcpPort(address: string): Promise<number> {
  const server = createServer();
  return await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: 0, host: address, exclusive: true }, () => {
      const bound = server.address();
      const port = bound !== null && typeof bound === "object" ? bound.port : 0;
      server.close(() => resolve(port));
    });
  });
}

const given = new Set<number>();

/**
 * A port that is free for UDP and TCP on a loopback address, given once in the life of this process. Programs that
 * cannot say which port they got need it; the time until they bind it is a race that the caller's start must notice.
 */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = await freeTcpPort(address);
    if (given.has(port) || !(await isFreeOverUdp(port, address))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no port free for UDP and TCP on ${address}`);
}

/**
 * A backend for TCP probes in a process of its own: on every loopback address, or on the addresses of its arguments only, at
 * one port, which it says. It takes connections and closes them when the prober does.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

const BACKLOG = 4_096;
const addresses = process.argv.slice(2);

async function listen(host: string, port: number): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.resume();
  });
  server.listen({ host, port, backlog: BACKLOG });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

let port = 0;
for (const address of addresses.length === 0 ? ["0.0.0.0"] : addresses) port = await listen(address, port);
console.info(`port ${port}`);

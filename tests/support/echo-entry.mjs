// Answers on every address of its machine: TCP and UDP, on the ports that the arguments name. Says "ready" when it does.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";

const ports = process.argv.slice(2).map(Number);
const addresses = Object.entries(networkInterfaces()).flatMap(([name, all]) =>
  all.map(({ address, family, scopeid }) => ({
    type: family === "IPv4" ? "udp4" : "udp6",
    address: scopeid > 0 ? `${address}%${name}` : address,
  })),
);

function serveTcp(port) {
  return new Promise((resolve) => createServer((socket) => socket.end("token\n")).listen(port, "::", resolve));
}

// One socket an address, so that the answer comes from the address that was asked.
function serveUdp({ type, address }, port) {
  return new Promise((resolve) => {
    const socket = createSocket(type);
    socket.on("message", (_, peer) => socket.send("token\n", peer.port, peer.address));
    // The kernel may still be trying out a link's own address; nobody asks for that one.
    socket.once("error", resolve);
    socket.bind({ port, address }, resolve);
  });
}

await Promise.all(ports.flatMap((port) => [serveTcp(port), ...addresses.map((address) => serveUdp(address, port))]));
process.stdout.write("ready\n");

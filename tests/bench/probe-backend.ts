/**
 * A backend in a process of its own, on every loopback address: it answers each request with 200 and closes. It says its port,
 * and at the end how many it has answered.
 */
import { createServer } from "node:net";

const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", "latin1");
const BACKLOG = 4_096;
let answered = 0;

const server = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => {});
  socket.once("data", () => {
    answered += 1;
    socket.end(ANSWER);
  });
});
server.listen({ host: "0.0.0.0", port: 0, backlog: BACKLOG }, () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.info(`port ${address.port}`);
});
process.once("SIGTERM", () => {
  console.info(`answered ${answered}`);
  process.exit(0);
});

/** An upstream in a process of its own that says its port and never anything more: it is to be halted, and reads nothing then. */
import { createSocket } from "node:dgram";

const socket = createSocket("udp4");
socket.bind(0, "127.0.0.1", () => console.info(`port ${socket.address().port}`));

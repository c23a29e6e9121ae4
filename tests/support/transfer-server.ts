/** Transfers over TCP without the rest of a node: what real programs make of them. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { nameFromText } from "../../src/dns/name.ts";
import { readTsig, signResponse, type TsigKey } from "../../src/dns/tsig.ts";
import { createTransfers, type TransfersOptions } from "../../src/primary/axfr.ts";
import { readTransferRequest } from "../../src/primary/axfr-request.ts";

export type TransferServer = Disposable & { readonly port: number };

const LENGTH_BYTES = 2;

/** Anybody may have any zone; who signs has to use the key. */
export async function startTransferServer(
  options: Pick<TransfersOptions, "encode" | "lookUpAlias">,
  key?: TsigKey,
): Promise<TransferServer> {
  const transfers = createTransfers({ ...options, now: () => performance.now(), onFailure: () => {} });
  const sockets = new Set<Socket>();
  const begin = (socket: Socket, bytes: Uint8Array) => {
    const signed = readTsig(bytes, () => key, nowSeconds());
    if (signed.kind === "refused") return socket.destroy();
    const reading = readTransferRequest(signed.kind === "verified" ? signed.bytes : bytes, 1232);
    if (reading.kind === "refused") return socket.destroy();
    const signer = signed.kind === "verified" ? signResponse(signed.key, signed.mac, nowSeconds) : undefined;
    const send = (message: Uint8Array) => {
      const framed = Buffer.alloc(LENGTH_BYTES + message.length);
      framed.writeUInt16BE(message.length);
      framed.set(message, LENGTH_BYTES);
      // `taken` is not to be called before `begin` has given it.
      socket.write(framed, () => setImmediate(() => transfer.taken(message.length)));
    };
    const transfer = transfers.begin(
      reading.request,
      signer,
      { client: "", send, cut: () => socket.destroy() },
      () => {},
    );
    socket.once("close", transfer.cancel);
    return socket;
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    let held = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= LENGTH_BYTES && held.length >= LENGTH_BYTES + held.readUInt16BE(0)) {
        const end = LENGTH_BYTES + held.readUInt16BE(0);
        begin(socket, held.subarray(LENGTH_BYTES, end));
        held = held.subarray(end);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}

/** The wire name of a text. */
export function wireNameOf(text: string): Uint8Array {
  const result = nameFromText(text);
  if (result.kind === "error") throw new Error(result.reason);
  return result.name;
}

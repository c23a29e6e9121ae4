/** Servers that hold one zone for whoever signs with one of their keys, and a server of ours that signs whatever it says. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { nameToText } from "../../src/dns/name.ts";
import { readTsig, refusalAnswer, signResponse, type TsigKey } from "../../src/dns/tsig.ts";
import { launchBind } from "../support/peers/bind.ts";
import { knotTemplate, launchKnot } from "../support/peers/knot.ts";
import { freePort } from "../support/ports.ts";
import type { ServerProgram } from "../support/server.ts";

/** A key's name without its last dot: so kdig has it too. */
export function keyText(key: TsigKey): string {
  return nameToText(key.name).slice(0, -1);
}

export function secretText(key: TsigKey): string {
  return Buffer.from(key.secret).toString("base64");
}

/** BIND as a primary of the zones, which each of the keys may transfer. */
export function bindWith(keys: readonly TsigKey[]): ServerProgram {
  const allowed = keys.map((key) => `key "${keyText(key)}";`).join(" ");
  return {
    name: "bind",
    command: "named",
    configure: (directory, port, zones) =>
      launchBind(directory, port, {
        statements: keys.map(
          (key) => `key "${keyText(key)}" { algorithm ${key.algorithm}; secret "${secretText(key)}"; };`,
        ),
        options: ["recursion no;", `allow-transfer { ${allowed} };`],
        zones: zones.map((zone) => `zone "${zone.name}" { type primary; file "${zone.file}"; };`),
      }),
  };
}

/** Knot as a primary of the zones, which each of the keys may transfer. */
export function knotWith(keys: readonly TsigKey[]): ServerProgram {
  return {
    name: "knot",
    command: "knotd",
    configure: (directory, port, zones) =>
      launchKnot(directory, port, {
        sections: [
          "key:",
          ...keys.flatMap((key) => [
            `  - id: "${keyText(key)}"`,
            `    algorithm: ${key.algorithm}`,
            `    secret: "${secretText(key)}"`,
          ]),
          "acl:",
          "  - id: transfer",
          `    key: [${keys.map((key) => `"${keyText(key)}"`).join(", ")}]`,
          "    action: transfer",
          ...knotTemplate(directory, "none"),
          "zone:",
          ...zones.flatMap((zone) => [`  - domain: "${zone.name}"`, `    file: "${zone.file}"`, "    acl: transfer"]),
        ],
      }),
  };
}

export type SigningServer = {
  readonly port: number;
  /** What came, in order: "verified", "unsigned", or rcode and error of a refusal. */
  readonly verdicts: readonly string[];
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

export type SigningOptions = {
  readonly keys: readonly TsigKey[];
  /** The messages of the answer to a verified message; unsigned ones get nothing. */
  readonly answers: (message: Uint8Array) => readonly Uint8Array[];
  /** Seconds that its clock goes ahead. */
  readonly aheadSeconds?: number;
  /** What it signs with instead of the right key. */
  readonly signsWith?: (key: TsigKey) => TsigKey;
};

/** A server on 127.0.0.1 over UDP and TCP that reads and makes signatures with the library under test. */
export async function startSigningServer(options: SigningOptions): Promise<SigningServer> {
  const verdicts: string[] = [];
  const clock = () => Math.floor(Date.now() / 1000) + (options.aheadSeconds ?? 0);
  const answer = (bytes: Uint8Array): readonly Uint8Array[] => {
    const find = (name: Uint8Array) => options.keys.find((key) => Buffer.compare(key.name, name) === 0);
    const request = readTsig(bytes, find, clock());
    verdicts.push(request.kind === "refused" ? `${request.rcode}/${request.error}` : request.kind);
    if (request.kind === "unsigned") return [];
    if (request.kind === "refused") return [refusalAnswer(request, clock())];
    const key = options.signsWith?.(request.key) ?? request.key;
    const signer = signResponse(key, request.mac, clock);
    return options.answers(request.bytes).map((message) => signer.sign(message));
  };
  const port = await freePort();
  const socket = createSocket("udp4");
  socket.on("message", (message, from) => {
    for (const bytes of answer(message)) socket.send(bytes, from.port, from.address);
  });
  socket.bind(port, "127.0.0.1");
  await once(socket, "listening");
  const server = createServer((connection) => {
    let buffered = Buffer.alloc(0);
    connection.on("error", () => {});
    connection.on("data", (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
        const end = 2 + buffered.readUInt16BE(0);
        for (const bytes of answer(buffered.subarray(2, end))) {
          connection.write(Buffer.concat([Uint8Array.of(bytes.length >> 8, bytes.length & 0xff), bytes]));
        }
        buffered = buffered.subarray(end);
      }
    });
    connection.on("end", () => connection.end());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    port,
    verdicts,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      server.close();
      await once(server, "close");
    },
  };
}

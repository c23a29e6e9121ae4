import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test, { type TestContext } from "node:test";
import { inquiries, ZONES } from "../interop/zone-questions.ts";
import { type Chance, seededChance } from "../support/chance.ts";
import { type DnsClient, exchangeTcp, openTcpClient, openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { mutateInto, newScratch, packetCorpus } from "../support/mutate.ts";
import { startSignpost } from "../support/signpost.ts";
import { classify } from "./classify.ts";
import { faultOf } from "./oracle.ts";

const UDP_PACKETS = 10_000;
const TCP_PACKETS = 5_000;
const TCP_STREAMS = 200;
/** Packets under way at once. */
const WINDOW = 16;
const TIMEOUT_MS = 20_000;

const names = [...new Set(inquiries().map(({ name }) => name))].filter((_, index) => index % 11 === 0);
const corpus = packetCorpus(names);
const soa = encodeQuery({ name: "corp.test.", type: 6 });

function mutated(chance: Chance): Buffer {
  const scratch = newScratch();
  do mutateInto(scratch, chance, corpus);
  while (
    // A client sets the id, and an empty message cannot be framed.
    scratch.length < 12
  );
  return Buffer.from(scratch.bytes.subarray(0, scratch.length));
}

/** Sends `count` packets and throws at the first answer that the oracle refuses; silence is only waited for once. */
async function sendPackets(client: DnsClient, transport: "udp" | "tcp", count: number, seed: number): Promise<void> {
  const chance = seededChance(seed);
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      const packet = mutated(chance);
      const silent = classify(packet).kind === "silence";
      const response = await client.ask(packet, silent ? 5 : TIMEOUT_MS);
      response?.copy(packet, 0, 0, 2);
      assert.equal(faultOf(packet, response, transport), undefined, `${transport} ${packet.toString("hex")}`);
    }
  };
  await Promise.all(Array.from({ length: WINDOW }, worker));
}

/** Bytes on a connection that are no sequence of messages: lengths of 0, lengths that lie, an end in the middle. */
async function sendStream(port: number, chance: Chance): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  await once(socket, "connect");
  const closed = once(socket, "close");
  const parts = Array.from({ length: 1 + chance.below(4) }, () => {
    const packet = mutated(chance);
    const prefix = Buffer.alloc(2);
    prefix.writeUInt16BE(chance.pick([0, 1, 11, 12, packet.length, packet.length - 1, packet.length + 1, 65_535]));
    return Buffer.concat([prefix, packet]);
  });
  socket.write(Buffer.concat(parts));
  if (chance.below(2) === 0) socket.destroy();
  else socket.end();
  socket.resume();
  await closed;
}

async function stillAnswers(t: TestContext, port: number): Promise<void> {
  const response = await exchangeTcp({ port }, soa, TIMEOUT_MS);
  assert.ok(response !== undefined && response.readUInt16BE(6) === 1, "answers over TCP");
  const udp = await openUdpClient({ port });
  t.after(() => udp.close());
  assert.equal((await udp.ask(soa, TIMEOUT_MS))?.readUInt16BE(6), 1, "answers over UDP");
}

test("a node survives mutated packets and broken streams on its sockets", { timeout: 600_000 }, async (t) => {
  await using server = await startSignpost({ zones: ZONES });
  const udp = await openUdpClient(server);
  t.after(() => udp.close());
  await sendPackets(udp, "udp", UDP_PACKETS, 1);
  const tcp = await openTcpClient(server);
  t.after(() => tcp.close());
  await sendPackets(tcp, "tcp", TCP_PACKETS, 2);
  const chance = seededChance(3);
  for (let left = TCP_STREAMS; left > 0; left -= 1) await sendStream(server.port, chance);
  await stillAnswers(t, server.port);
  assert.equal(server.status(), undefined, server.output());
  assert.doesNotMatch(server.output(), /"level":"error"/);
});

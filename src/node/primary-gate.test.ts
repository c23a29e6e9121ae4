/** Signed messages, updates and transfers at the thread that resolves, with the test in the place of the control thread. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { openTcpClient, openUdpClient } from "../../tests/support/dns-client.ts";
import { openResolveLab } from "../../tests/support/resolve-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { decode, nameOf, queryBytes, zone } from "../../tests/support/zone-lab.ts";
import { cidrFromText } from "../base/ip.ts";
import { FLAG, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { decodeMessage } from "../dns/message.ts";
import { signRequest, verifyResponse } from "../dns/tsig.ts";
import { setPrimary } from "../image/primary.ts";
import type { ZoneForTransfer } from "../primary/axfr.ts";
import { createTransferEncoder, type TransferAlias } from "../primary/axfr-encode.ts";
import type { FromPrimary, PrimaryKey, PrimarySettings, ToPrimary } from "../primary/messages.ts";
import { publishZoneFile } from "../publish/zone-file-source.ts";

const APEX = nameOf("corp.test.");
const KEY: PrimaryKey = {
  ...{ name: nameOf("key.test."), algorithm: "hmac-sha256", secret: Buffer.alloc(32, 7) },
  ...{ grants: undefined, hasManagementView: false },
};
const NOBODY: PrimaryKey = { ...KEY, name: nameOf("nothing.test."), grants: [] };
const SETTINGS: PrimarySettings = {
  keys: [KEY, NOBODY],
  transfers: { enabled: true, allowNetworks: [] },
  updates: { enabled: true, unsignedNetworks: [] },
};
const LOOPBACK = cidrFromText("127.0.0.0/8") ?? assert.fail();
const UPDATE = queryBytes("corp.test. SOA", { opcode: OPCODE.UPDATE, edns: false });
const AXFR = queryBytes("corp.test. AXFR", { edns: false });

type Question = Extract<FromPrimary, { readonly kind: "update" | "encode" }>;

/** The control thread as the test plays it. */
async function open(settings: PrimarySettings | null = SETTINGS, udp: "batch" | "dgram" = "batch") {
  const lab = await openResolveLab({ udp });
  const text = zone("corp.test.", "www A 192.0.2.80\nwww A 192.0.2.81");
  assert.deepEqual(publishZoneFile(lab.writer, Buffer.from(text)).errors, []);
  const asked: Question[] = [];
  const answers: ((message: ToPrimary) => void)[] = [];
  lab.link.onPrimary((question) => {
    asked.push(question);
    return new Promise((resolve) => answers.push(resolve));
  });
  if (settings !== null) lab.link.sendPrimary(settings);
  setPrimary(lab.shared, { updates: true, transfers: true });
  const port = lab.addresses[0]?.port ?? 0;
  const until = (count: number) => waitFor("control is asked", 10_000, () => asked.length >= count);
  return { lab, asked, answers, port, until, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
}

function sign(bytes: Uint8Array, key = KEY) {
  const seconds = Math.floor(Date.now() / 1_000);
  const { bytes: signed, mac } = signRequest(key, bytes, seconds);
  const rcodeOf = (answer: Buffer | undefined): number => {
    const verified = verifyResponse(answer ?? new Uint8Array(0), key, mac, seconds);
    return verified.kind === "verified" ? decode(verified.bytes).rcode : assert.fail(verified.reason);
  };
  return { signed, rcodeOf };
}

/** Sends bytes as they are, so often, and gives so many answers. */
async function exchange(port: number, bytes: Uint8Array, times: number): Promise<readonly Buffer[]> {
  const socket = createSocket("udp4");
  const answers: Buffer[] = [];
  socket.on("message", (answer) => answers.push(answer));
  for (let time = 0; time < times; time++) socket.send(bytes, port, "127.0.0.1");
  await waitFor(`${times} answers`, 10_000, () => answers.length === times);
  socket.close();
  return answers;
}

function encodedZone(aliases: readonly TransferAlias[]): ZoneForTransfer {
  const head = { apex: APEX, ttl: 60, soa: Buffer.concat([APEX, APEX, new Uint8Array(20)]) };
  const encoder = createTransferEncoder(head);
  return { kind: "zone", transfer: { ...head, serial: 0, aliases, messages: encoder.finish(aliases.length === 0) } };
}

for (const udp of ["batch", "dgram"] as const) {
  test(`an update is carried out once however often it is sent, and its answers are signed: ${udp}`, async () => {
    await using world = await open(SETTINGS, udp);
    const { asked, answers, port, until } = world;
    const { signed, rcodeOf } = sign(UPDATE);
    const exchanged = exchange(port, signed, 3);
    await until(1);
    const figures = () => world.lab.link.primaryFigures();
    await waitFor("the others have come", 10_000, async () => (await figures())?.updates.joined === 2);
    const [question] = asked;
    assert.ok(question?.kind === "update");
    assert.deepEqual(
      [question.keyName, [...question.address], Buffer.from(question.message)],
      ["key.test.", [127, 0, 0, 1], Buffer.from(UPDATE)],
    );
    answers[0]?.({ kind: "updated", id: question.id, rcode: RCODE.YXRRSET });
    for (const answer of await exchanged) assert.equal(rcodeOf(answer), RCODE.YXRRSET);
    assert.equal(asked.length, 1);
    const told = await figures();
    assert.deepEqual(told?.updates, {
      ...{ underWay: 0, byRcode: [{ rcode: RCODE.YXRRSET, count: 3 }] },
      ...{ joined: 2, tooMany: 0, late: 0 },
    });
    assert.equal(told.signatures.ok, 3);
  });
}

test("what may change nothing does not reach control; what is no update is FORMERR", async () => {
  await using world = await open();
  const tcp = await openTcpClient({ port: world.port });
  const rcode = async (bytes: Uint8Array) => decode((await tcp.ask(bytes)) ?? new Uint8Array(0)).rcode;
  assert.equal(await rcode(UPDATE), RCODE.REFUSED);
  assert.equal(await rcode(queryBytes("sub.corp.test. SOA", { opcode: OPCODE.UPDATE })), RCODE.NOTAUTH);
  assert.equal(await rcode(queryBytes("corp.test. A", { opcode: OPCODE.UPDATE })), RCODE.FORMERR);
  assert.equal(world.asked.length, 0);
  assert.deepEqual(world.lab.lines, Array(2).fill("an unsigned update was refused"));
  world.lab.link.sendPrimary({ ...SETTINGS, updates: { enabled: true, unsignedNetworks: [LOOPBACK] } });
  const asking = tcp.ask(UPDATE);
  await world.until(1);
  const [question] = world.asked;
  assert.ok(question?.kind === "update" && question.keyName === undefined);
  world.answers[0]?.({ kind: "updated", id: question.id, rcode: RCODE.NOERROR });
  assert.equal(decode((await asking) ?? new Uint8Array(0)).rcode, RCODE.NOERROR);
  tcp.close();
});

test("a signed query is resolved where that is needed, and its answer is signed", async () => {
  await using world = await open();
  const { signed, rcodeOf } = sign(queryBytes("n1.example. A", { flags: FLAG.RD }));
  const [answer] = await exchange(world.port, signed, 1);
  assert.equal(rcodeOf(answer), RCODE.NOERROR);
  assert.deepEqual(
    decode(answer ?? new Uint8Array(0)).answers.map(({ rdata }) => rdata.join(".")),
    ["192.0.2.1"],
  );
});

test("who knows no keys yet says SERVFAIL, and never that there is no key", async () => {
  await using world = await open(null);
  const udp = await openUdpClient({ port: world.port });
  const { signed } = sign(queryBytes("www.corp.test. A"));
  for (const bytes of [signed, UPDATE]) {
    assert.equal(decode((await udp.ask(bytes)) ?? new Uint8Array(0)).rcode, RCODE.SERVFAIL);
  }
  udp.close();
  world.lab.link.sendPrimary(SETTINGS);
  const again = sign(queryBytes("www.corp.test. A"));
  const [answer] = await exchange(world.port, again.signed, 1);
  assert.equal(again.rcodeOf(answer), RCODE.NOERROR);
});

test("a transfer has the addresses behind ALIAS: all of our own, and those that others have", async () => {
  await using world = await open();
  const tcp = await openTransfer(world.port);
  const [question] = await askFor(world, tcp);
  const alias = (owner: string, target: string) => ({ owner: nameOf(owner), target: nameOf(target), ttl: 120 });
  const aliases = [alias("own.corp.test.", "www.corp.test."), alias("far.corp.test.", "n2.example.")];
  world.answers[0]?.({ kind: "encoded", id: question?.id ?? 0, zone: encodedZone(aliases) });
  const records = await waitFor("all of it", 10_000, () => {
    const all = tcp.answers();
    return all.length === 5 && all;
  });
  assert.deepEqual(
    records.slice(1, 4).map(({ name, ttl, rdata }) => [name[1], ttl, rdata.join(".")]),
    [
      ["o".charCodeAt(0), 120, "192.0.2.80"],
      ["o".charCodeAt(0), 120, "192.0.2.81"],
      ["f".charCodeAt(0), 120, "192.0.2.1"],
    ],
  );
  assert.deepEqual([records[0]?.type, records[4]?.type], [RRTYPE.SOA, RRTYPE.SOA]);
  await waitFor("it is done", 10_000, async () => (await world.lab.link.primaryFigures())?.transfers.done === 1);
  tcp.socket.destroy();
});

test("a key without the grant has no transfer, and a zone that is gone is NOTAUTH", async () => {
  await using world = await open();
  const tcp = await openTcpClient({ port: world.port });
  // The client sets the id after the signature, as a forwarder would.
  const denied = await tcp.ask(sign(AXFR, NOBODY).signed);
  assert.equal(decode(denied ?? new Uint8Array(0)).rcode, RCODE.REFUSED);
  for (const name of ["www.corp.test.", "elsewhere.test."]) {
    const absent = await tcp.ask(queryBytes(`${name} AXFR`, { edns: false }));
    assert.equal(decode(absent ?? new Uint8Array(0)).rcode, RCODE.NOTAUTH, name);
  }
  // A client that falls back from IXFR may leave its SOA in the authority section; the pointer is to the question's name.
  const soa = Buffer.concat([Buffer.of(0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22), Buffer.alloc(22)]);
  const left = Buffer.concat([AXFR, soa]);
  left[9] = 1;
  const asking = tcp.ask(sign(left).signed);
  await world.until(1);
  world.answers[0]?.({ kind: "encoded", id: world.asked[0]?.id ?? 0, zone: { kind: "absent" } });
  assert.equal(decode((await asking) ?? new Uint8Array(0)).rcode, RCODE.NOTAUTH);
  tcp.close();
  const figures = await world.lab.link.primaryFigures();
  assert.equal(figures?.transfers.denied, 3);
});

test("a transfer that was asked for while its key was there is sent to its end, and the next one is refused", async () => {
  await using world = await open();
  const tcp = await openTransfer(world.port);
  const [question] = await askFor(world, tcp);
  world.lab.link.sendPrimary({ ...SETTINGS, keys: [] });
  const other = await openTcpClient({ port: world.port });
  assert.equal(decode((await other.ask(sign(AXFR).signed)) ?? new Uint8Array(0)).rcode, RCODE.NOTAUTH);
  world.answers[0]?.({ kind: "encoded", id: question?.id ?? 0, zone: encodedZone([]) });
  await waitFor("both SOA", 10_000, () => tcp.answers().length === 2);
  const { signatures, transfers } = (await world.lab.link.primaryFigures()) ?? assert.fail();
  assert.deepEqual([signatures.ok, signatures.badkey, transfers.denied], [1, 1, 0]);
  other.close();
  tcp.socket.destroy();
});

test("with the end of control what it had in hand is SERVFAIL at once, and so is the rest until another comes", async () => {
  await using world = await open();
  const [update, transfer] = [sign(UPDATE), sign(AXFR)];
  const tcp = await openTcpClient({ port: world.port });
  const exchanged = exchange(world.port, update.signed, 1);
  const asking = tcp.ask(transfer.signed);
  await world.until(2);
  const port = world.lab.resolve.connect();
  const [answer] = await exchanged;
  assert.equal(update.rcodeOf(answer), RCODE.SERVFAIL);
  assert.equal(decode((await asking) ?? new Uint8Array(0)).rcode, RCODE.SERVFAIL);
  port.close();
  const later = sign(UPDATE);
  assert.equal(later.rcodeOf((await exchange(world.port, later.signed, 1))[0]), RCODE.SERVFAIL);
  tcp.close();
});

test("with the end of the thread its transfers end with their connections", async () => {
  await using world = await open();
  const tcp = await openTransfer(world.port);
  await askFor(world, tcp);
  const closed = once(tcp.socket, "close");
  const udp = await openUdpClient({ port: world.port });
  void udp.ask(queryBytes("kill.example. A", { flags: FLAG.RD }), 1);
  await closed;
  assert.deepEqual(tcp.answers(), []);
  udp.close();
});

type TransferClient = Awaited<ReturnType<typeof openTransfer>>;

async function openTransfer(port: number) {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  await once(socket, "connect");
  let held = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
  });
  /** The records of all messages. */
  const answers = () => {
    const all = [];
    for (let at = 0; at + 2 <= held.length && at + 2 + held.readUInt16BE(at) <= held.length; ) {
      const end = at + 2 + held.readUInt16BE(at);
      const decoded = decodeMessage(held.subarray(at + 2, end));
      if (decoded.kind === "message") all.push(...decoded.message.answers);
      at = end;
    }
    return all;
  };
  return { socket, answers };
}

async function askFor(
  world: { readonly until: (count: number) => Promise<unknown>; readonly asked: Question[] },
  tcp: TransferClient,
) {
  const { signed } = sign(AXFR);
  tcp.socket.write(Buffer.concat([Buffer.of(signed.length >> 8, signed.length & 255), signed]));
  await world.until(1);
  return world.asked;
}

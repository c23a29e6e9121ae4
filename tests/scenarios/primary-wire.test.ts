/** Signed messages, updates and transfers of a running node, as dig, kdig, nsupdate and knsupdate see them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FLAG, OPCODE, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../src/dns/message.ts";
import { nameFromText } from "../../src/dns/name.ts";
import { signRequest, type TsigKey, verifyResponse } from "../../src/dns/tsig.ts";
import type { TsigAlgorithm } from "../../src/dns/tsig-algorithms.ts";
import { exchangeUdp, openTcpClient } from "../support/dns-client.ts";
import { runToEnd } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { create, figure } from "./notify-world.ts";
import { EXAMPLE_ZONE, type ScenarioNode, startNode } from "./running-node.ts";
import { directory, env, kdig, switchOn, VERIFIED } from "./transport-world.ts";

const ALGORITHMS: readonly TsigAlgorithm[] = [
  ...(["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const),
  ...(["hmac-sha224", "hmac-sha1", "hmac-md5"] as const),
];
const SECRET = Buffer.alloc(32, 5);
const BASE64 = SECRET.toString("base64");
const KEY: TsigKey = { name: wire("key-hmac-sha256."), algorithm: "hmac-sha256", secret: SECRET };
const SIGNED = ["-y", `hmac-sha256:key-hmac-sha256:${BASE64}`];
/** May transfer without a key, and update without one; nobody else may without. */
const SECONDARY = "127.0.0.2";
const UPDATER = "127.0.0.3";
/** Far more than the kernel keeps for a client that takes nothing. */
const LARGE_RECORDS = 1_500;
const LARGE_STRINGS = 16;

let node: ScenarioNode;
let dot = 0;

before(async () => {
  const large = join(directory, "large.test.zone");
  const text = `"${"x".repeat(250)}" `.repeat(LARGE_STRINGS);
  const records = Array.from({ length: LARGE_RECORDS }, (_, index) => `t${index} TXT ${text}`);
  const head = ["$ORIGIN large.test.", "$TTL 300", "@ SOA ns1 hostmaster 1 7200 900 1209600 300", "@ NS ns1"];
  await writeFile(large, [...head, "ns1 A 192.0.2.1", ...records, ""].join("\n"));
  node = await startNode({ zones: [EXAMPLE_ZONE, large], env: { ...env, SVC_DNS_TSIG_MD5: "true" } });
  ({ dot } = await switchOn(node));
  await using api = await signIn(node.api);
  for (const algorithm of ALGORITHMS) {
    await create(api, "/tsig-keys", { name: `key-${algorithm}.`, algorithm, secret: BASE64 });
  }
  await create(api, "/tsig-keys", { name: "manager.", secret: BASE64, management_view: true, grants: [] });
  const networks = { axfr: [`${SECONDARY}/32`], updates: [`${UPDATER}/32`] };
  for (const [path, body] of [
    ["/config/axfr", { enabled: true, allow_networks: networks.axfr }],
    ["/config/dynamic-dns", { enabled: true, allow_unsigned_networks: networks.updates }],
  ] as const) {
    assert.equal((await api.ask("PUT", path, body)).status, 200);
  }
});

after(() => node[Symbol.asyncDispose]());

function wire(text: string): Uint8Array {
  const result = nameFromText(text);
  return result.kind === "name" ? result.name : assert.fail(result.reason);
}

/** As dig prints it: all of it. */
function digAll(...words: string[]): Promise<string> {
  const { port } = server();
  return runToEnd("dig", ["@127.0.0.1", "-p", String(port), "+tries=1", "+time=20", ...words], 60_000);
}

function server() {
  return node.dns[0] ?? assert.fail("it serves no DNS");
}

function decode(bytes: Uint8Array | undefined): Message {
  const decoded = decodeMessage(bytes ?? new Uint8Array(0));
  return decoded.kind === "message" ? decoded.message : assert.fail(decoded.reason);
}

/** RCODE of the answer to an update, as nsupdate says it. */
async function nsupdate(words: readonly string[], ...lines: string[]): Promise<string> {
  const script = [`server 127.0.0.1 ${server().port}`, "zone example.test.", ...lines, "send", "answer", ""].join("\n");
  const file = join(directory, "update.txt");
  await writeFile(file, script);
  // It ends with an error where the update was not carried out.
  const out = await runToEnd("sh", ["-c", `nsupdate ${words.join(" ")} ${file} || true`], 60_000);
  return /status: ([A-Z]+)/.exec(out.slice(out.indexOf("Answer:")))?.[1] ?? out;
}

const address = (name: string) => dig(server(), `${name}.example.test`, "A");

test("a zone is given whole to who is listed, and to nobody else", async () => {
  const out = await digAll("-b", SECONDARY, "+tcp", "example.test", "AXFR");
  const size = /XFR size: 33 records \(messages 1, bytes (\d+)\)/.exec(out) ?? assert.fail(out);
  const line = await waitFor("the log has it", 20_000, () => {
    const text = node.child
      .output()
      .split("\n")
      .find((one) => one.includes("a zone was transferred"));
    return text !== undefined && JSON.parse(text);
  });
  const { level, zone, address, key, serial, messages, records, bytes } = line;
  assert.deepEqual([level, zone, address, key], ["info", "example.test.", SECONDARY, undefined]);
  assert.deepEqual([messages, records, bytes], [1, 33, Number(size[1])]);
  assert.match(out, new RegExp(`SOA\\s+\\S+ \\S+ ${serial} `));
  assert.ok((await figure(node, "svc_transfer_sent_bytes_total")) >= bytes);
  assert.match(await digAll("+tcp", "example.test", "AXFR"), /Transfer failed/);
  assert.match(await digAll("-b", SECONDARY, "+tcp", "elsewhere.test", "AXFR"), /Transfer failed/);
  const request = (name: string) => encodeMessage(makeQuery(1, wire(name), RRTYPE.AXFR)).bytes;
  const tcp = await openTcpClient(server());
  assert.equal(decode(await tcp.ask(request("example.test."))).rcode, RCODE.REFUSED);
  const signed = signRequest(KEY, request("elsewhere.test."), Math.floor(Date.now() / 1_000)).bytes;
  // The id that is sent is another than the one that was signed, which a signature allows for.
  assert.equal(decode(await tcp.ask(signed)).rcode, RCODE.NOTAUTH);
  tcp.close();
  assert.equal(decode(await exchangeUdp(server(), request("example.test."))).rcode, RCODE.NOTIMP);
});

for (const algorithm of ALGORITHMS) {
  test(`queries and transfers signed by ${algorithm} are verified, and so are their answers`, async () => {
    const key = ["-y", `${algorithm}:key-${algorithm}:${BASE64}`];
    const answer = await digAll(...key, "web.example.test", "CNAME");
    assert.match(answer, /status: NOERROR[\s\S]*www\.example\.test\.[\s\S]*TSIG PSEUDOSECTION/);
    assert.doesNotMatch(answer, /WARNING -- Some TSIG|Couldn't verify/);
    const zone = await digAll(...key, "+tcp", "example.test", "AXFR");
    assert.match(zone, /XFR size: 33 records/);
    assert.doesNotMatch(zone, /Couldn't verify/);
    const named = `"key":"key-${algorithm}."`;
    await waitFor("the log names the key", 20_000, () =>
      node.child
        .output()
        .split("\n")
        .some((line) => line.includes("a zone was transferred") && line.includes(named)),
    );
  });
}

test("a transfer over TLS has every message signed", async () => {
  const out = await kdig(dot, "+tls", ...VERIFIED, ...SIGNED, "large.test", "AXFR");
  const said = out
    .split("\n")
    .filter((line) => line.startsWith(";;"))
    .join("\n");
  assert.match(said, new RegExp(`messages, ${LARGE_RECORDS + 4} records`));
  assert.doesNotMatch(said, /WARNING|;; ERROR/);
});

test("a signature that is not right says why", async () => {
  assert.match(await digAll("-y", `hmac-sha256:nobody:${BASE64}`, "example.test", "SOA"), /NOTAUTH[\s\S]*BADKEY/);
  assert.match(await digAll("-y", `hmac-sha512:key-hmac-sha256:${BASE64}`, "example.test", "SOA"), /BADKEY/);
  const wrong = Buffer.alloc(32, 9).toString("base64");
  assert.match(
    await digAll("-y", `hmac-sha256:key-hmac-sha256:${wrong}`, "example.test", "SOA"),
    /NOTAUTH[\s\S]*BADSIG/,
  );
  const query = encodeMessage(makeQuery(7, wire("example.test."), RRTYPE.SOA)).bytes;
  const seconds = Math.floor(Date.now() / 1_000);
  const late = signRequest(KEY, query, seconds - 1_000);
  const answer = (await exchangeUdp(server(), late.bytes)) ?? assert.fail("no answer");
  const verified = verifyResponse(answer, KEY, late.mac, seconds - 1_000);
  assert.deepEqual(
    [decode(answer).rcode, verified.kind === "failed" && [verified.reason, verified.error, verified.isAuthentic]],
    [RCODE.NOTAUTH, ["error", 18, true]],
  );
  const twice = signRequest(KEY, signRequest(KEY, query, seconds).bytes, seconds).bytes;
  assert.equal(decode(await exchangeUdp(server(), twice)).rcode, RCODE.FORMERR);
  assert.ok((await figure(node, 'svc_tsig_messages_total{outcome="badtime"}')) >= 1);
  const lines = () => node.child.output().split("\n").slice(0, -1);
  const complaints = () => lines().filter((line) => line.includes("a signature is not good"));
  await waitFor("the log says so", 20_000, () => complaints().some((line) => line.includes("formerr")));
  const said = complaints().map((line) => JSON.parse(line));
  const told = said.map((line) => [line.outcome, line.key, line.address]);
  assert.deepEqual(told.slice(0, 3), [
    ["badkey", "nobody.", "127.0.0.1"],
    ["badkey", "key-hmac-sha256.", "127.0.0.1"],
    ["badsig", "key-hmac-sha256.", "127.0.0.1"],
  ]);
  const [behind] = said.flatMap(({ behind_seconds }) => behind_seconds ?? []);
  assert.ok(behind >= 1_000 && behind < 1_060, `${behind} seconds`);
  assert.ok(!node.child.output().includes(BASE64), "no secret is in the log");
});

test("other messages are answered as unsigned ones are, with a signature", async () => {
  const seconds = Math.floor(Date.now() / 1_000);
  const plain = makeQuery(9, wire("example.test."), RRTYPE.SOA, FLAG.RD);
  for (const [message, rcode] of [
    [{ ...plain, opcode: OPCODE.NOTIFY }, RCODE.REFUSED],
    [{ ...plain, opcode: 15, questions: [] }, RCODE.NOTIMP],
    [makeQuery(9, wire("example.test."), RRTYPE.IXFR), RCODE.NOTIMP],
    [makeQuery(9, wire("example.test."), RRTYPE.TKEY), RCODE.NOTIMP],
    [makeQuery(9, wire("example.test."), RRTYPE.AXFR), RCODE.NOTIMP],
    [makeQuery(9, wire("x.nobody.test."), RRTYPE.A), RCODE.REFUSED],
    [makeQuery(9, wire("nothing.example.test."), RRTYPE.A), RCODE.NXDOMAIN],
  ] as const) {
    const { bytes, mac } = signRequest(KEY, encodeMessage(message).bytes, seconds);
    const answer = (await exchangeUdp(server(), bytes)) ?? assert.fail("no answer");
    assert.equal(verifyResponse(answer, KEY, mac, seconds).kind, "verified");
    assert.equal(decode(answer).rcode, rcode);
  }
});

test("an answer over UDP fits with its signature, and else is cut short", async () => {
  const { bytes, mac } = signRequest(
    KEY,
    encodeMessage(makeQuery(3, wire("t1.large.test."), RRTYPE.TXT)).bytes,
    Math.floor(Date.now() / 1_000),
  );
  const answer = (await exchangeUdp(server(), bytes)) ?? assert.fail("no answer");
  assert.equal(verifyResponse(answer, KEY, mac, Math.floor(Date.now() / 1_000)).kind, "verified");
  assert.ok(answer.length <= 512 && (decode(answer).flags & FLAG.TC) !== 0, `${answer.length} bytes`);
  assert.match(await digAll(...SIGNED, "+bufsize=512", "t1.large.test", "TXT"), /ANSWER: 1[\s\S]*\(TCP\)/);
});

test("updates by nsupdate and knsupdate, over UDP and TCP", async () => {
  assert.equal(await nsupdate(SIGNED, "update add one.example.test. 300 A 192.0.2.7"), "NOERROR");
  assert.equal(await address("one"), "192.0.2.7");
  const replaced = ["update delete one.example.test. A", "update add one.example.test. 60 A 192.0.2.8"];
  assert.equal(await nsupdate(["-v", ...SIGNED], "prereq yxrrset one.example.test. A", ...replaced), "NOERROR");
  assert.equal(await address("one"), "192.0.2.8");
  assert.equal(
    await nsupdate(SIGNED, "prereq nxdomain one.example.test.", "update delete one.example.test."),
    "YXDOMAIN",
  );
  assert.equal(await nsupdate(["-v", ...SIGNED], "update delete one.example.test."), "NOERROR");
  assert.equal(await address("one"), "");
  const file = join(directory, "knsupdate.txt");
  const lines = [
    `server 127.0.0.1 ${server().port}`,
    "zone example.test.",
    `key hmac-sha256:key-hmac-sha256. ${BASE64}`,
  ];
  await writeFile(file, [...lines, "update add two.example.test. 300 A 192.0.2.9", "send", ""].join("\n"));
  await runToEnd("knsupdate", [file], 60_000);
  assert.equal(await address("two"), "192.0.2.9");
});

test("unsigned updates are taken from the networks that are listed, and from nowhere else", async () => {
  const add = "update add three.example.test. 300 A 192.0.2.10";
  assert.equal(await nsupdate([], add), "REFUSED");
  assert.equal(await nsupdate([], `local ${UPDATER}`, add), "NOERROR");
  assert.equal(await address("three"), "192.0.2.10");
  const update = { ...makeQuery(4, wire("unknown.test."), RRTYPE.SOA), opcode: OPCODE.UPDATE };
  assert.equal(decode(await exchangeUdp(server(), encodeMessage(update).bytes)).rcode, RCODE.NOTAUTH);
  const noZone = encodeMessage({ ...update, questions: [] }).bytes;
  assert.equal(decode(await exchangeUdp(server(), noZone)).rcode, RCODE.FORMERR);
});

test("a key with the management view sees all values of a record, and what an override hides", async () => {
  await using api = await signIn(node.api);
  const { body } = await api.ask("GET", "/zones?q=example.test.");
  const zone = body.items.find((one: { readonly name: string }) => one.name === "example.test.");
  const values = ["192.0.2.31", "192.0.2.32", "192.0.2.33"].map((value) => ({ value }));
  const record = { name: "pool", type: "A", ttl: 77, values, lb_policy: { method: "failover" } };
  await create(api, `/zones/${zone.id}/records`, record);
  await create(api, "/overrides", { name: "pool.example.test", type: "A", values: [{ value: "192.0.2.99" }], ttl: 5 });
  assert.equal(await address("pool"), "192.0.2.99");
  const manager = ["-y", `hmac-sha256:manager:${BASE64}`, "pool.example.test", "A", "+noall", "+answer"];
  const lines = (await digAll(...manager)).match(/pool\.example\.test\.\s+77\s+IN\s+A\s+\S+/g) ?? [];
  assert.deepEqual(
    lines.map((line) => line.split(/\s+/).at(-1)),
    values.map(({ value }) => value),
  );
  assert.match(await digAll("-y", `hmac-sha256:manager:${BASE64}`, "+tcp", "example.test", "AXFR"), /Transfer failed/);
});

test("a client that takes nothing of a transfer disturbs nobody, and has all of it once it does", async () => {
  const { port } = server();
  const socket = connect({ host: "127.0.0.1", port, localAddress: SECONDARY });
  const framed = (message: Message) => {
    const { bytes } = encodeMessage(message);
    return Buffer.concat([Buffer.of(0, bytes.length), bytes]);
  };
  socket.write(framed(makeQuery(1, wire("large.test."), RRTYPE.AXFR)));
  await once(socket, "readable");
  const running = "svc_transfers_running";
  await waitFor("it is under way", 20_000, async () => (await figure(node, running)) === 1, 50);
  socket.write(framed(makeQuery(2, wire("www.example.test."), RRTYPE.A)));
  const tcp = await openTcpClient({ port });
  const query = encodeMessage(makeQuery(3, wire("www.example.test."), RRTYPE.A)).bytes;
  for (let time = 0; time < 20; time++) assert.equal(decode(await tcp.ask(query)).answers.length, 2);
  tcp.close();
  assert.match(await digAll("-b", SECONDARY, "+tcp", "example.test", "AXFR"), /XFR size/);
  assert.equal(await figure(node, running), 1);
  const counts = new Map<number, number>();
  let held = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const end = 2 + held.readUInt16BE(0);
      const { id, answers } = decode(held.subarray(2, end));
      counts.set(id, (counts.get(id) ?? 0) + answers.length);
      held = held.subarray(end);
    }
  });
  const wanted = LARGE_RECORDS + 4;
  await waitFor("all of both", 20_000, () => counts.get(1) === wanted && counts.get(2) === 2);
  await waitFor("it is done", 20_000, async () => (await figure(node, running)) === 0, 50);
  socket.destroy();
});

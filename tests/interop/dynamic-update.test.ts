/** Dynamic updates beside BIND, which gets the same messages, and from the programs that send them. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { applyUpdate } from "../../src/commands/dynamic-update.ts";
import { OPCODE, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { decodeMessage } from "../../src/dns/message.ts";
import { nameToText } from "../../src/dns/name.ts";
import { rdataToText } from "../../src/dns/rdata.ts";
import { typeToText } from "../../src/dns/type-names.ts";
import { parseUpdate } from "../../src/dns/update.ts";
import { relativeTo } from "../../src/model/names.ts";
import type { CommandWorld } from "../support/commands.ts";
import { exchangeTcp } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { launchBind } from "../support/peers/bind.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { type ServerProgram, startServer } from "../support/server.ts";
import { givenUpdateZone, updateBytes, ZONE, zoneLines } from "../support/update-text.ts";

const TIMEOUT_MS = 30_000;

/** BIND with zones that everybody may update and transfer. */
const bind: ServerProgram = {
  name: "bind",
  command: "named",
  configure: (directory, port, zones) =>
    launchBind(directory, port, {
      options: ["recursion no;", "allow-transfer { any; };"],
      zones: zones.map(
        ({ name, file }) =>
          `zone "${name}" { type primary; file "${file}"; allow-update { any; }; check-integrity no; check-names ignore; };`,
      ),
    }),
};

const RECORDS = `
@ 300 NS ns1.corp.
@ 300 MX 10 mail.corp.
ns1 300 A 192.0.2.53
www 300 A 192.0.2.1
www 300 A 192.0.2.2
alias 300 CNAME www.corp.
txt 300 TXT "a"
a.b 300 A 192.0.2.3
`;

/** One after the other, to the same zone. */
const UPDATES: readonly string[] = [
  "prereq nxdomain new\nadd new 300 A 192.0.2.9",
  "prereq nxdomain new\nadd new 300 A 192.0.2.10",
  "prereq yxdomain new\nadd new 60 A 192.0.2.10",
  "prereq yxdomain b\nadd x 60 A 192.0.2.10",
  "prereq yxrrset www A\nadd www 300 A 192.0.2.1",
  "prereq yxrrset www MX\nadd www 300 A 192.0.2.7",
  "prereq nxrrset www A\nadd www 300 A 192.0.2.7",
  "prereq yxrrset www A 192.0.2.2\nprereq yxrrset www A 192.0.2.1\nadd www 300 A 192.0.2.3",
  "prereq yxrrset www A 192.0.2.2\nprereq yxrrset www A 192.0.2.1\nadd www 300 A 192.0.2.4",
  "prereq yxrrset @ MX 10 MAIL\nadd @ 300 MX 20 mail",
  "prereq nxdomain www\nprereq yxrrset www MX\nadd x 60 A 192.0.2.10",
  "raw-prereq www 255 255 7\nadd x 60 A 192.0.2.10",
  "raw-prereq www 255 1 0 c0000201\nadd x 60 A 192.0.2.10",
  "raw-prereq www.other. 255 255 0\nadd x 60 A 192.0.2.10",
  "raw-prereq www 255 252 0\nadd x 60 A 192.0.2.10",
  "raw-prereq www 254 253 0\nadd x 60 A 192.0.2.11",
  "raw-prereq www 1 255 0\nadd x 60 A 192.0.2.10",
  "raw-prereq www 3 16 0 00\nadd x 60 A 192.0.2.10",
  "add x 60 A 192.0.2.10\nadd y.other. 60 A 192.0.2.10",
  "add x 60 A 192.0.2.10\nraw-update www 1 255 300 00",
  "add x 60 A 192.0.2.10\nraw-update www 255 1 300",
  "add x 60 A 192.0.2.10\nraw-update www 255 1 0 c0000201",
  "add x 60 A 192.0.2.10\nraw-update www 254 1 300 c0000201",
  "add x 60 A 192.0.2.10\nraw-update www 254 255 0",
  "add x 60 A 192.0.2.10\nraw-update www 3 16 300 00",
  "delete www A 192.0.2.1\nadd www 300 A 192.0.2.5",
  "delete www A 192.0.2.99\ndelete nobody\ndelete nobody A",
  "add alias 300 A 192.0.2.1",
  "add alias 60 CNAME other",
  "add www 300 CNAME other",
  "add @ 300 CNAME other",
  "delete alias\nadd alias 300 A 192.0.2.1",
  "delete www A\nadd www 300 CNAME other",
  "delete @ NS\ndelete @ NS ns1\ndelete @ SOA",
  // BIND wants the servers of a zone to have addresses.
  "add ns2 300 A 192.0.2.54",
  "add @ 300 NS ns2\ndelete @ NS ns1",
  "delete @ NS ns2",
  "add @ 300 SOA ns1 admin 1 1 1 1 1",
  "delete @",
  'add txt 60 TXT "b"\nadd txt 60 TXT "a" "b"',
  'delete txt TXT "a"',
  'delete TXT TXT\nadd txt 60 TXT "c"',
  "add * 60 A 192.0.2.1\nadd a\\.b 60 A 192.0.2.1",
  "add sub 60 NS ns.sub\nadd ns.sub 60 A 192.0.2.1",
  'add @ 60 CAA 0 issue "ca.example"\nadd _x._tcp 60 SRV 1 2 3 www',
  "add @ 60 AAAA 2001:db8::1\ndelete _x._tcp SRV 1 2 3 WWW",
];

async function applyHere(world: CommandWorld, bytes: Uint8Array): Promise<number> {
  const update = parseUpdate(bytes);
  if (update.kind === "refused") return update.rcode;
  return (await applyUpdate(world.context, { address: "192.0.2.1" }, update)).rcode;
}

/** The zone as BIND transfers it, without its SOA, in the form of `zoneLines`. */
async function transferred(port: number): Promise<readonly string[]> {
  const bytes = await exchangeTcp({ port }, encodeQuery({ name: ZONE, type: RRTYPE.AXFR }), TIMEOUT_MS);
  const decoded = decodeMessage(bytes ?? new Uint8Array(0));
  assert.ok(decoded.kind === "message");
  const { answers } = decoded.message;
  // The zone is small: all of it is in one message.
  assert.equal(answers.filter(({ type }) => type === RRTYPE.SOA).length, 2);
  return answers
    .filter(({ type }) => type !== RRTYPE.SOA)
    .map(({ name, ttl, type, rdata }) => {
      const owner = relativeTo(nameToText(name).toLowerCase(), ZONE);
      return `${owner} ${ttl} ${typeToText(type)} ${rdataToText(type, rdata)}`;
    })
    .sort();
}

test("BIND gives the same rcodes to the same updates, and has the same zone after each", async (context) => {
  if (requireProgram(context, "named") === undefined) return;
  const directory = await mkdtemp(join(tmpdir(), "signpost-update-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
  const file = join(directory, "corp.zone");
  const head = "$ORIGIN corp.\n@ 3600 IN SOA ns1 hostmaster 1000 7200 900 1209600 300\n";
  await writeFile(file, `${head}${RECORDS}`);
  await using server = await startServer(bind, { zones: [{ name: "corp", file }] });
  await using world = await givenUpdateZone(RECORDS);
  assert.deepEqual(zoneLines(world.store), await transferred(server.port));
  for (const text of UPDATES) {
    const bytes = updateBytes(text);
    const answer = await exchangeTcp({ port: server.port }, bytes, TIMEOUT_MS);
    assert.ok(answer !== undefined, `no answer to ${text}`);
    assert.equal(await applyHere(world, bytes), answer[3]! & 0xf, text);
    assert.deepEqual(zoneLines(world.store), await transferred(server.port), text);
  }
});

type Receiver = AsyncDisposable & { readonly port: number; readonly rcodes: readonly number[] };

/** Takes updates by UDP, carries them out and answers with a header. */
async function openReceiver(world: CommandWorld): Promise<Receiver> {
  const socket = createSocket("udp4");
  const rcodes: number[] = [];
  socket.on("message", (bytes, { address, port }) => {
    void applyHere(world, bytes).then((rcode) => {
      rcodes.push(rcode);
      const header = Buffer.alloc(12);
      bytes.copy(header, 0, 0, 2);
      header[2] = 0x80 | (OPCODE.UPDATE << 3);
      header[3] = rcode;
      socket.send(header, port, address);
    });
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    port: socket.address().port,
    rcodes,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, "close");
    },
  };
}

/** What a person types; both programs know these words. */
const SCRIPT = `
zone corp.
prereq nxdomain new.corp.
update add new.corp. 300 A 192.0.2.9
update add new.corp. 300 TXT "one" "two"
send
prereq yxrrset www.corp. A
update delete www.corp. A 192.0.2.1
update add www.corp. 60 A 192.0.2.8
send
prereq yxrrset www.corp. A 192.0.2.2
prereq yxrrset www.corp. A 192.0.2.8
update delete alias.corp. CNAME
update delete txt.corp.
send
update add _sip._tcp.corp. 60 SRV 1 2 5060 sip.corp.
update add corp. 60 MX 20 other.corp.
send
`;

for (const program of ["nsupdate", "knsupdate"]) {
  test(`${program} changes a zone`, async (context) => {
    const path = requireProgram(context, program);
    if (path === undefined) return;
    await using world = await givenUpdateZone(RECORDS);
    await using receiver = await openReceiver(world);
    const directory = await mkdtemp(join(tmpdir(), "signpost-update-"));
    await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
    const file = join(directory, "script");
    await writeFile(file, `server 127.0.0.1 ${receiver.port}\n${SCRIPT}`);
    await runToEnd(path, [file], TIMEOUT_MS);
    assert.deepEqual(receiver.rcodes, [RCODE.NOERROR, RCODE.NOERROR, RCODE.NOERROR, RCODE.NOERROR]);
    assert.deepEqual(zoneLines(world.store), [
      "@ 300 NS ns1.corp.",
      "@ 60 MX 10 mail.corp.",
      "@ 60 MX 20 other.corp.",
      "_sip._tcp 60 SRV 1 2 5060 sip.corp.",
      "a.b 300 A 192.0.2.3",
      "new 300 A 192.0.2.9",
      'new 300 TXT "one" "two"',
      "ns1 300 A 192.0.2.53",
      "www 60 A 192.0.2.2",
      "www 60 A 192.0.2.8",
    ]);
  });
}

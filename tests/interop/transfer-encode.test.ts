/** Zones as we transfer them, beside the transfers of NSD, Knot and BIND from the same zone file, and as dig and kdig read them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { TsigKey } from "../../src/dns/tsig.ts";
import { createTransferPool } from "../../src/node/transfer-pool.ts";
import { importZoneFiles } from "../../src/node/zone-files.ts";
import { ALONE } from "../support/commands.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { peers, requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { type ServerProgram, startServer } from "../support/server.ts";
import { temporaryStore } from "../support/store.ts";
import { startTransferServer, wireNameOf } from "../support/transfer-server.ts";
import { keyText, secretText } from "./tsig-peers.ts";

const AXFR = 252;
const SOA = 6;
const PROGRAM_MS = 60_000;

/** A peer of the usual settings that lets anybody transfer; `edits` are done to its file of settings. */
function transferring(
  program: ServerProgram,
  file: string,
  edits: readonly (readonly [RegExp, string])[],
): ServerProgram {
  return {
    ...program,
    configure: async (directory, port, zones) => {
      const launch = await program.configure(directory, port, zones);
      const path = join(directory, file);
      const text = await readFile(path, "utf8");
      await writeFile(
        path,
        edits.reduce((before, [what, by]) => {
          assert.match(before, what);
          return before.replace(what, by);
        }, text),
      );
      return launch;
    },
  };
}

const PRIMARIES: readonly ServerProgram[] = [
  transferring(peers.nsd, "nsd.conf", [[/^ {2}zonefile: .*$/gm, "$&\n  provide-xfr: 127.0.0.1 NOKEY"]]),
  transferring(peers.knot, "knot.conf", [
    [/^template:$/m, "acl:\n  - id: anybody\n    address: 127.0.0.1\n    action: transfer\n$&"],
    [/^ {2}- id: default$/m, "$&\n    acl: anybody"],
  ]),
  transferring(peers.bind, "named.conf", [[/allow-transfer \{ none; \}/, "allow-transfer { any; }"]]),
];

/** The records of a transfer without the SOA that ends it; names without regard to case, a TTL only where it is asked for. */
async function transferFrom(port: number, zone: string, withTtl = true): Promise<readonly string[]> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  const query = encodeQuery({ name: zone, type: AXFR });
  socket.write(Buffer.concat([Uint8Array.of(query.length >> 8, query.length & 0xff), query]));
  const records: string[] = [];
  const soas: number[] = [];
  let held = Buffer.alloc(0);
  for await (const chunk of socket) {
    held = Buffer.concat([held, chunk]);
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const end = 2 + held.readUInt16BE(0);
      const message = decodeMessage(held.subarray(2, end));
      assert.equal(message.rcode, 0);
      for (const { owner, type, ttl, rdata } of message.answer) {
        if (type === SOA) soas.push(records.length);
        records.push(`${owner.toLowerCase()}${withTtl ? ` ${ttl}` : ""} ${type} ${rdata.toLowerCase()}`);
      }
      held = held.subarray(end);
    }
    if (soas.length === 2) break;
  }
  assert.deepEqual(soas, [0, records.length - 1]);
  assert.equal(records[0], records.pop());
  return records;
}

/** Of many records, only those that one side has. */
function assertSame(ours: readonly string[], theirs: readonly string[], what = ""): void {
  const [left, right] = [new Set(ours), new Set(theirs)];
  const shown = ([...more]: Iterable<string>) => more.slice(0, 10).map((line) => line.slice(0, 200));
  assert.deepEqual({ onlyOurs: shown(left.difference(right)), onlyTheirs: shown(right.difference(left)) }, NONE, what);
  assert.equal(ours.length, theirs.length, what);
}

const NONE = { onlyOurs: [], onlyTheirs: [] };

async function ourServer(file: string, key?: TsigKey) {
  const world = await temporaryStore();
  const report = await importZoneFiles(world.context, ALONE, [{ name: undefined, file }]);
  assert.deepEqual([report.refused, report.faults], [[], []]);
  const pool = createTransferPool({ directory: world.directory, store: world.store });
  const server = await startTransferServer({ encode: pool.encode, lookUpAlias: async () => undefined }, key);
  return {
    port: server.port,
    encode: (zone: string) => pool.encode(wireNameOf(zone)),
    [Symbol.asyncDispose]: async () => {
      server[Symbol.dispose]();
      await pool[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

/**
 * In each RRset one TTL, and none of 0, so that a store that knows neither has the same. NSD cannot transfer an RR of more
 * than 16 KB, and BIND takes no more than 100 in an RRset.
 */
const EVERY_TYPE = `$ORIGIN every.test.
$TTL 300
@ 3600 SOA ns1 host\\.master 2026010101 7200 900 1209600 300
@ 3600 NS ns1
@ 3600 NS ns.elsewhere.example.
@ MX 10 mail
@ MX 20 mail.elsewhere.example.
@ CAA 128 iodef "mailto:security@every.test"
ns1 60 A 10.1.0.53
ns1 AAAA fd00:1::53
WWW.Upper CNAME Ns1
*.wild TXT "a" "" "\\000\\255"
_sip._tcp SRV 10 60 5060 sip
_sip._tcp SRV 10 40 5061 .
7.0.10.in-addr PTR ns1
sub NS ns.sub
ns.sub A 10.9.9.9
odd\\.label 2147483647 A 10.1.3.1
${Array.from({ length: 90 }, (_, index) => `many A 10.2.${index >> 8}.${index & 255}`).join("\n")}
long TXT ${`"${"x".repeat(255)}" `.repeat(50)}
${Array.from({ length: 8_000 }, (_, index) => `host${index}.rack${index % 40} A 10.3.${index >> 8}.${index & 255}`).join("\n")}
`;

async function withZoneFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-transfer-"));
  try {
    const file = join(directory, "zone");
    await writeFile(file, text);
    return await use(file);
  } finally {
    await rm(directory, { recursive: true });
  }
}

const VECTORS = fileURLToPath(new URL("../vectors/", import.meta.url));

for (const program of PRIMARIES) {
  test(`a zone of every type is transferred as ${program.name} transfers it`, async (t) => {
    if (requireProgram(t, program.command) === undefined) return;
    await withZoneFile(EVERY_TYPE, async (file) => {
      await using peer = await startServer(program, { zones: [{ name: "every.test", file }] });
      await using ours = await ourServer(file);
      const theirs = await transferFrom(peer.port, "every.test");
      assert.ok(theirs.length > 8_100);
      assertSame(await transferFrom(ours.port, "every.test"), theirs);
    });
  });

  test(`a zone of hard cases is transferred as ${program.name} transfers it`, async (t) => {
    if (requireProgram(t, program.command) === undefined) return;
    for (const name of ["corp", "other", "child", "shadow"]) {
      const file = join(VECTORS, `diff-${name}.zone`);
      const origin = /^\$ORIGIN (\S+)\.$/m.exec(await readFile(file, "utf8"))?.[1] ?? assert.fail(file);
      await using peer = await startServer(program, { zones: [{ name: origin, file }] });
      await using ours = await ourServer(file);
      assertSame(await transferFrom(ours.port, origin, false), await transferFrom(peer.port, origin, false), name);
    }
  });
}

const KEY: TsigKey = { name: wireNameOf("transfer."), algorithm: "hmac-sha256", secret: Buffer.alloc(32, "secret") };

async function asks(t: TestContext, command: string, args: readonly string[]): Promise<string | undefined> {
  return requireProgram(t, command) === undefined ? undefined : await runToEnd(command, args, PROGRAM_MS);
}

test("dig and kdig take signed transfers of many messages whole, and verify each", async (t) => {
  await withZoneFile(EVERY_TYPE, async (file) => {
    await using ours = await ourServer(file, KEY);
    const [port, secret] = [String(ours.port), secretText(KEY)];
    const encoded = await ours.encode("every.test.");
    assert.ok(encoded.kind === "zone" && encoded.transfer.messages.length > 2);
    const records = /every\.test\.\s+3600\s+IN\s+SOA/g;
    const key = `${KEY.algorithm}:${keyText(KEY)}:${secret}`;
    const at = ["@127.0.0.1", "-p", port, "every.test", "AXFR"];
    const dig = await asks(t, "dig", ["-y", key, ...at]);
    const kdig = await asks(t, "kdig", ["-y", key, ...at]);
    for (const output of [dig, kdig]) {
      if (output === undefined) continue;
      assert.doesNotMatch(output, /WARNING|Transfer failed|verif/i);
      assert.equal(output.match(records)?.length, 2, output.slice(-2_000));
      assert.match(output, /host7999\.rack39\.every\.test\./);
    }
  });
});

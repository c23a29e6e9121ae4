/** Knot, NSD and BIND as secondaries of a running node, with TSIG and NOTIFY, while its API is written to. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { launchBind } from "../support/peers/bind.ts";
import { launchKnot } from "../support/peers/knot.ts";
import { launchNsd } from "../support/peers/nsd.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { type RunningServer, type ServerProgram, startServer } from "../support/server.ts";
import { waitFor } from "../support/wait.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { create, figure } from "./notify-world.ts";
import { startNode } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-secondaries-"));
after(() => rm(directory, { recursive: true, force: true }));

const ZONE = "corp.test";
const KEY = "secondaries";
const SECRET = Buffer.alloc(32, 3).toString("base64");
/** More than one message of a transfer has room for. */
const HOSTS = 4_000;
const WRITES = 45;
const WAIT_MS = 60_000;

/** Each takes the zone from `primary`, is told of changes by it, and gives it to this machine. */
function knotOf(primary: number): ServerProgram {
  return {
    name: "knot",
    command: "knotd",
    configure: (place, port) =>
      launchKnot(place, port, {
        logs: "info",
        sections: [
          "key:",
          `  - id: ${KEY}`,
          "    algorithm: hmac-sha256",
          `    secret: ${SECRET}`,
          "remote:",
          "  - id: primary",
          `    address: 127.0.0.1@${primary}`,
          `    key: ${KEY}`,
          "acl:",
          "  - id: told",
          `    key: ${KEY}`,
          "    action: notify",
          "  - id: given",
          "    address: 127.0.0.1",
          "    action: transfer",
          "zone:",
          `  - domain: ${ZONE}`,
          `    storage: "${place}"`,
          "    master: primary",
          "    acl: [told, given]",
        ],
      }),
  };
}

function nsdOf(primary: number): ServerProgram {
  return {
    name: "nsd",
    command: "nsd",
    configure: (place, port) =>
      launchNsd(place, port, {
        server: ["xfrd-reload-timeout: 0"],
        clauses: [
          "key:",
          `  name: "${KEY}"`,
          "  algorithm: hmac-sha256",
          `  secret: "${SECRET}"`,
          "zone:",
          `  name: "${ZONE}"`,
          `  zonefile: "${join(place, "corp.zone")}"`,
          `  request-xfr: 127.0.0.1@${primary} ${KEY}`,
          `  allow-notify: 127.0.0.1 ${KEY}`,
          "  provide-xfr: 127.0.0.1 NOKEY",
        ],
      }),
  };
}

function bindOf(primary: number): ServerProgram {
  return {
    name: "bind",
    command: "named",
    configure: (place, port) =>
      launchBind(place, port, {
        statements: [`key "${KEY}" { algorithm hmac-sha256; secret "${SECRET}"; };`],
        options: ["recursion no;"],
        zones: [
          `zone "${ZONE}" {`,
          `  type secondary; file "${join(place, "corp.zone")}"; masterfile-format text;`,
          `  primaries port ${primary} { 127.0.0.1 key "${KEY}"; };`,
          `  allow-notify { key "${KEY}"; }; allow-transfer { 127.0.0.1; };`,
          "};",
        ],
      }),
  };
}

async function dig(port: number, ...words: string[]): Promise<string> {
  return await runToEnd("dig", ["@127.0.0.1", "-p", String(port), "+noall", "+answer", ...words], WAIT_MS);
}

async function serialOf(port: number): Promise<string | undefined> {
  return / SOA (?:\S+ ){2}(\d+) /.exec((await dig(port, ZONE, "SOA")).replaceAll(/\s+/g, " "))?.[1];
}

/** All RRs in an order of their own. */
async function contentOf(port: number, ...words: string[]): Promise<readonly string[]> {
  const lines = (await dig(port, "+onesoa", ...words, ZONE, "AXFR")).split("\n");
  return lines.flatMap((line) => (line === "" || line.startsWith(";") ? [] : [line.replaceAll(/\s+/g, " ")])).sort();
}

/** Creates, changes and deletes, one after the other. */
async function writeALot(api: ApiClient, zoneId: string): Promise<void> {
  const path = `/zones/${zoneId}/records`;
  let last: string | undefined;
  for (let count = 0; count < WRITES; count++) {
    const values = [{ value: `10.9.0.${count}` }, { value: `10.9.1.${count}` }];
    const { status, body } = await api.ask("POST", path, { name: `written-${count}`, type: "A", values });
    assert.equal(status, 200, JSON.stringify(body));
    const changed = count % 3;
    if (changed === 1) {
      assert.equal((await api.ask("PUT", `/records/${body.id}`, { ttl: 60 + count })).status, 200);
    } else if (changed === 2 && last !== undefined) {
      assert.equal((await api.ask("DELETE", `/records/${last}`)).status, 200);
    }
    last = body.id;
  }
}

test("secondaries with a key are told of every change, and have in the end what the node has", async (context) => {
  if (!["knotd", "nsd", "named"].every((program) => requireProgram(context, program) !== undefined)) return;
  const file = join(directory, "corp.zone");
  const hosts = Array.from({ length: HOSTS }, (_, index) => `host-${index} A 10.${index >> 8}.${index & 0xff}.1`);
  const head = [`$ORIGIN ${ZONE}.`, "$TTL 300", "@ SOA ns1 hostmaster 1 7200 900 1209600 300", "@ NS ns1"];
  await writeFile(file, [...head, "ns1 A 192.0.2.1", ...hosts, ""].join("\n"));
  await using node = await startNode({ zones: [file] });
  const port = node.dns[0]?.port ?? 0;
  await using api = await signIn(node.api);
  const grants = [{ zone: `${ZONE}.`, transfer: true }];
  await create(api, "/tsig-keys", { name: KEY, algorithm: "hmac-sha256", secret: SECRET, grants });
  const put = async (settings: object) => {
    const { status, body } = await api.ask("PUT", "/config/axfr", settings);
    assert.equal(status, 200, JSON.stringify(body));
  };
  await put({ enabled: true });
  const readyWithinMs = WAIT_MS;
  const zones = [{ name: ZONE, file }];
  const programs = [knotOf(port), nsdOf(port), bindOf(port)];
  await using servers = new AsyncDisposableStack();
  const secondaries: RunningServer[] = [];
  for (const program of programs) {
    secondaries.push(servers.use(await startServer(program, { zones, readyWithinMs })));
  }
  await put({
    notify_targets: secondaries.map((each) => `127.0.0.1:${each.port}`),
    notify_tsig_key_name: `${KEY}.`,
    notify_debounce_seconds: 0,
  });
  const { body } = await api.ask("GET", `/zones?name=${ZONE}.`);
  await writeALot(api, body.items[0].id);
  const serial = await serialOf(port);
  assert.ok(serial !== undefined);
  for (const { name, port: theirs } of secondaries) {
    await waitFor(`${name} has the last serial`, WAIT_MS, async () => (await serialOf(theirs)) === serial);
  }
  const content = await contentOf(port, "-y", `hmac-sha256:${KEY}:${SECRET}`);
  assert.ok(content.length > HOSTS + WRITES);
  for (const { name, port: theirs } of secondaries) assert.deepEqual(await contentOf(theirs), content, name);
  assert.ok((await figure(node, "svc_dns_notify_answered_total")) >= secondaries.length);
  assert.equal(await figure(node, 'svc_tsig_messages_total{outcome="badsig"}'), 0);
  assert.ok((await figure(node, 'svc_transfers_total{outcome="done"}')) > 2 * secondaries.length);
  // Nobody without the key.
  assert.deepEqual(await contentOf(port), []);
});

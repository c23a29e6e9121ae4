import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { Registry } from "prom-client";
import { auditOf } from "../../tests/support/commands.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { recordBody, zoneBody } from "../../tests/support/store-objects.ts";
import { updateBytes, ZONE, zoneLines } from "../../tests/support/update-text.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { RCODE } from "../dns/codes.ts";
import { CONTROL, createSharedImage, PRIMARY } from "../image/shared.ts";
import type { TsigKeyBody } from "../model/objects.ts";
import type { FromPrimary, ToPrimary } from "../primary/messages.ts";
import type { FromResolve } from "../resolve/settings.ts";
import { PREPARED_RECORDS_MIN } from "./primary-limits.ts";
import { openPrimaryPlane } from "./primary-plane.ts";
import { createResolveLink } from "./resolve-link.ts";

const SECRET = Buffer.alloc(32, 7).toString("base64");

function keyBody(name: string, extra: Partial<TsigKeyBody> = {}): TsigKeyBody {
  return { id: `tsg_${name}`, name, algorithm: "hmac-sha256", secret: SECRET, management_view: false, ...extra };
}

/** Takes the other end of the link's port: the thread that answers, as a script. */
function scriptedThread(port: MessageChannel["port2"]) {
  const told: ToPrimary[] = [];
  port.on("message", (message: ToPrimary) => {
    told.push(message);
    if (message.kind === "ask-primary-figures") {
      post({ kind: "told-primary-figures", id: message.id, figures: FIGURES });
    }
  });
  const post = (message: FromPrimary | FromResolve) => port.postMessage(message);
  const until = <Kind extends ToPrimary["kind"]>(
    kind: Kind,
    matches = (_: Extract<ToPrimary, { kind: Kind }>) => true,
  ) =>
    waitFor(kind, 10_000, () =>
      told.find((message): message is Extract<ToPrimary, { kind: Kind }> => {
        return message.kind === kind && matches(message as Extract<ToPrimary, { kind: Kind }>);
      }),
    );
  return { told, post, until };
}

const FIGURES = {
  signatures: { ok: 5, badkey: 4, badsig: 3, badtime: 2, badtrunc: 1, formerr: 0 },
  updates: {
    underWay: 1,
    byRcode: [
      { rcode: RCODE.NOERROR, count: 7 },
      { rcode: 3841, count: 1 },
    ],
    ...{ joined: 6, tooMany: 8, late: 9 },
  },
  transfers: { running: 1, waiting: 2, done: 3, cut: 4, refused: 5, failed: 6, bytes: 9, denied: 7, malformed: 8 },
};

async function world(context: TestContext) {
  const opened = await temporaryStore();
  context.after(() => opened[Symbol.asyncDispose]());
  const { store, directory } = opened;
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE));
    tx.setState(ZONE, "active");
  });
  const shared = createSharedImage(1);
  const { port1, port2 } = new MessageChannel();
  const link = createResolveLink(port1);
  context.after(() => link[Symbol.dispose]());
  const registry = new Registry();
  const lines: string[] = [];
  const plane = openPrimaryPlane({
    context: { ...opened.context, log: (_, line) => void lines.push(line) },
    ...{ shared, directory, primary: link, isMd5Enabled: false, metrics: { registry } },
    publisher: { settled: async () => {} },
  });
  context.after(() => plane[Symbol.asyncDispose]());
  const word = () => Atomics.load(new Int32Array(shared.control), CONTROL.PRIMARY);
  return { store, link, plane, registry, lines, word, thread: scriptedThread(port2) };
}

const ENABLED = { enabled: true, allow_unsigned_networks: ["192.0.2.0/24"] };

test("the thread hears the settings when they change, and a new one when it begins", async (context) => {
  const { store, link, thread, word } = await world(context);
  const first = await thread.until("primary-settings");
  assert.deepEqual(first.settings, {
    keys: [],
    transfers: { enabled: false, allowNetworks: [] },
    updates: { enabled: false, unsignedNetworks: [] },
  });
  assert.equal(word(), 0);
  const grants = [{ zone: ZONE, names: ["_acme-challenge"], types: ["TXT" as const], update: true }];
  await store.write((tx) => {
    tx.put("tsig-key", keyBody("acme.", { grants, management_view: true }));
    tx.put("tsig-key", keyBody("old.", { algorithm: "hmac-md5" }));
    tx.put("config", { name: "dynamic-dns", settings: ENABLED });
    tx.put("config", { name: "axfr", settings: { enabled: true, allow_networks: ["2001:db8::/32"] } });
  });
  assert.equal(word(), PRIMARY.UPDATES | PRIMARY.TRANSFERS);
  const { settings } = await thread.until("primary-settings", (message) => message.settings.updates.enabled);
  assert.deepEqual(
    settings.keys.map(({ name, secret, ...rest }) => ({ ...rest, name: [...name], secret: [...secret] })),
    [
      {
        algorithm: "hmac-sha256",
        grants: [{ zone: ZONE, transfer: false }],
        hasManagementView: true,
        name: [...nameOf("acme.")],
        secret: [...Buffer.alloc(32, 7)],
      },
    ],
  );
  assert.deepEqual(settings.transfers.allowNetworks[0]?.prefixBits, 32);
  assert.deepEqual(settings.updates.unsignedNetworks[0]?.prefixBits, 24);
  // Another thread takes over, and asks for the settings as the first one does.
  const { port1, port2 } = new MessageChannel();
  link.connect(port1);
  const next = scriptedThread(port2);
  next.post({ kind: "ready" });
  assert.deepEqual((await next.until("primary-settings")).settings, settings);
});

test("updates are carried out in the order in which they came, and the log of changes says by which key from where", async (context) => {
  const { store, thread, lines } = await world(context);
  await store.write((tx) => {
    tx.put("tsig-key", keyBody("acme.", { grants: [{ zone: ZONE, types: ["TXT"], update: true }] }));
    tx.put("config", { name: "dynamic-dns", settings: ENABLED });
  });
  const update = (id: number, text: string, keyName?: string) => {
    const message = updateBytes(text);
    thread.post({ kind: "update", id, keyName, address: Uint8Array.of(198, 51, 100, 7), message });
  };
  for (let id = 1; id <= 50; id++) update(id, `delete token TXT\nadd token 60 TXT "${id}"`, "acme.");
  update(51, "add www 60 A 192.0.2.1", "acme.");
  update(52, "add www 60 A 192.0.2.1");
  thread.post({ kind: "update", id: 53, keyName: undefined, address: new Uint8Array(16), message: Uint8Array.of(1) });
  const answers = await waitFor("all answers", 10_000, () => {
    const all = thread.told.flatMap((message) => (message.kind === "updated" ? [message] : []));
    return all.length === 53 && new Map(all.map(({ id, rcode }) => [id, rcode]));
  });
  assert.deepEqual(new Set(Array.from({ length: 50 }, (_, index) => answers.get(index + 1))), new Set([RCODE.NOERROR]));
  assert.deepEqual([answers.get(51), answers.get(52), answers.get(53)], [RCODE.REFUSED, RCODE.REFUSED, RCODE.FORMERR]);
  assert.deepEqual(zoneLines(store), ['token 60 TXT "50"']);
  const [entry] = auditOf(store, {});
  assert.deepEqual([entry?.user_id, entry?.user_name, entry?.source_address], ["tsg_acme.", "acme.", "198.51.100.7"]);
  assert.equal(lines.length, 3);
});

test("what is asked by a thread that is gone is not told to the one after it", async (context) => {
  const { store, link, thread } = await world(context);
  await store.write((tx) => tx.put("config", { name: "dynamic-dns", settings: { enabled: true } }));
  const { port1, port2 } = new MessageChannel();
  const next = scriptedThread(port2);
  thread.post({ kind: "encode", id: 1, zone: nameOf(ZONE) });
  link.connect(port1);
  next.post({ kind: "encode", id: 2, zone: nameOf(ZONE) });
  const answer = await next.until("encoded");
  assert.equal(answer.id, 2);
  assert.ok(answer.zone.kind === "zone");
  assert.deepEqual([...answer.zone.transfer.apex], [...nameOf(ZONE)]);
});

test("the figures of the thread and of the pool are on the page, and its own too", async (context) => {
  const { store, thread, registry } = await world(context);
  await store.write((tx) => {
    tx.put("config", { name: "dynamic-dns", settings: { enabled: true, allow_unsigned_networks: ["0.0.0.0/0"] } });
    tx.put("record", recordBody(ZONE, "gone"));
  });
  const message = updateBytes("add a 60 A 192.0.2.1\ndelete gone");
  thread.post({ kind: "update", id: 1, keyName: undefined, address: Uint8Array.of(10, 0, 0, 1), message });
  await thread.until("updated");
  thread.post({ kind: "encode", id: 2, zone: nameOf(ZONE) });
  await thread.until("encoded");
  const text = await registry.metrics();
  for (const line of [
    'svc_tsig_messages_total{outcome="badsig"} 3',
    'svc_updates_total{rcode="NOERROR"} 7',
    'svc_updates_total{rcode="RCODE3841"} 1',
    'svc_updates_shed_total{reason="too_late"} 9',
    'svc_transfers_total{outcome="too_many"} 5',
    'svc_transfers_total{outcome="denied"} 7',
    "svc_transfers_running 1",
    "svc_transfer_zones_encoded_total 1",
    "svc_transfer_kept_zones 1",
    "svc_update_records_changed_total 2",
    "svc_update_duration_seconds_count 1",
    "svc_dns_notify_sent_total 0",
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
});

test("where transfers are switched on, large zones are encoded before anybody asks", async (context) => {
  const { store, registry } = await world(context);
  await store.write((tx) => {
    for (let index = 0; index < PREPARED_RECORDS_MIN; index++) tx.put("record", recordBody(ZONE, `n${index}`));
    tx.put("zone", zoneBody("small.test."));
    tx.setState("small.test.", "active");
    tx.put("config", { name: "axfr", settings: { enabled: true } });
  });
  await waitFor("one zone is kept", 10_000, async () => {
    return (await registry.metrics()).includes("svc_transfer_kept_zones 1\n");
  });
});

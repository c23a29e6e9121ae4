import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { Registry } from "prom-client";
import { temporaryStore } from "../../tests/support/store.ts";
import { recordBody, zoneBody } from "../../tests/support/store-objects.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { decodeMessage } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { readTsig, signResponse, type TsigKey } from "../dns/tsig.ts";
import type { TsigKeyBody } from "../model/objects.ts";
import { openDnsNotify } from "./dns-notify-plane.ts";

const ZONE = "corp.test.";
const KEY: TsigKey = { name: nameOf("notify."), algorithm: "hmac-sha512", secret: new Uint8Array(64).fill(9) };
const KEY_BODY: TsigKeyBody = {
  id: "tsg_1",
  name: "notify.",
  algorithm: "hmac-sha512",
  secret: Buffer.from(KEY.secret).toString("base64"),
  management_view: false,
};

/** A secondary that answers what it is told, but for the first message of each zone. */
async function openSecondary() {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const heard: { readonly zone: string; readonly serial: number; readonly isSigned: boolean; readonly atMs: number }[] =
    [];
  socket.on("message", (bytes, { address, port }) => {
    const nowSeconds = Math.floor(Date.now() / 1_000);
    const request = readTsig(bytes, () => KEY, nowSeconds);
    const decoded = decodeMessage(bytes);
    if (decoded.kind === "error") return;
    const zone = nameToText(decoded.message.questions[0]?.name ?? new Uint8Array(1));
    const rdata = Buffer.from(decoded.message.answers[0]?.rdata ?? []);
    const isSigned = request.kind === "verified";
    const isFirst = !heard.some((other) => other.zone === zone);
    heard.push({ zone, serial: rdata.readUInt32BE(rdata.length - 20), isSigned, atMs: performance.now() });
    if (isFirst) return;
    const answer = Buffer.from(request.kind === "verified" ? request.bytes : bytes);
    answer[2] = (answer[2] ?? 0) | 0x80;
    const signed = request.kind === "verified" ? signResponse(KEY, request.mac, () => nowSeconds).sign(answer) : answer;
    socket.send(signed, port, address);
  });
  return { port: socket.address().port, heard, [Symbol.dispose]: () => socket.close() };
}

test("a write here is announced to the targets within the debounce time, signed, until they answer", async () => {
  await using world = await temporaryStore();
  const { store } = world;
  using secondary = await openSecondary();
  const registry = new Registry();
  using _notify = openDnsNotify({ store, published: async () => {}, isMd5Enabled: false, registry, log: () => {} });
  const settings = {
    enabled: true,
    notify_targets: [`127.0.0.1:${secondary.port}`],
    notify_tsig_key_name: "notify.",
    notify_debounce_seconds: 1,
  };
  await store.write((tx) => {
    tx.put("tsig-key", KEY_BODY);
    tx.put("config", { name: "axfr", settings });
  });
  const write = async (value: string) => {
    await store.write((tx) => {
      tx.put("zone", zoneBody(ZONE));
      tx.put("zone", zoneBody("pending.test."));
      tx.setState(ZONE, "active");
      tx.put("record", recordBody(ZONE, "www", { values: [{ value }] }));
    });
  };
  const sinceMs = performance.now();
  await write("10.0.0.1");
  await write("10.0.0.2");
  const answered = await waitFor("the answer", 10_000, async () => {
    const text = await registry.metrics();
    return text.includes("svc_dns_notify_answered_total 1") && text;
  });
  assert.match(answered, /svc_dns_notify_sent_total 2/);
  assert.match(answered, /svc_dns_notify_pending 0/);
  assert.deepEqual(
    secondary.heard.map(({ zone, serial, isSigned }) => ({ zone, serial, isSigned })),
    [1, 2].map(() => ({ zone: ZONE, serial: store.serialOf(ZONE), isSigned: true })),
  );
  assert.ok((secondary.heard[0]?.atMs ?? 0) - sinceMs >= 1_000);
});

test("nobody is told while transfers are off, nor of what another node wrote", async () => {
  await using world = await temporaryStore();
  await using other = await temporaryStore({ nodeId: "other-node" });
  const { store } = world;
  using secondary = await openSecondary();
  const registry = new Registry();
  using _notify = openDnsNotify({ store, published: async () => {}, isMd5Enabled: false, registry, log: () => {} });
  const put = (enabled: boolean) =>
    store.write((tx) => {
      const notify_targets = [`127.0.0.1:${secondary.port}`];
      tx.put("config", { name: "axfr", settings: { enabled, notify_targets, notify_debounce_seconds: 0 } });
    });
  const make = (where: typeof store, zone: string) =>
    where.write((tx) => {
      tx.put("zone", zoneBody(zone));
      tx.setState(zone, "active");
    });
  await put(false);
  await make(store, "silent.test.");
  await put(true);
  await make(other.store, "remote.test.");
  await store.applyRemote(other.store.rawItems({ limit: 1_000 }).items);
  assert.equal(store.stateOf("remote.test."), "active");
  await make(store, "told.test.");
  await waitFor("the announcement", 5_000, () => secondary.heard.length >= 2);
  assert.deepEqual(new Set(secondary.heard.map(({ zone }) => zone)), new Set(["told.test."]));
});

test("what is stored at the start is announced, whoever wrote it", async () => {
  await using world = await temporaryStore();
  await using other = await temporaryStore({ nodeId: "other-node" });
  const { store } = world;
  using secondary = await openSecondary();
  const make = (where: typeof store, zone: string, state: "active" | "pending" = "active") =>
    where.write((tx) => {
      tx.put("zone", zoneBody(zone));
      if (state === "active") tx.setState(zone, state);
    });
  await make(other.store, "remote.test.");
  await store.applyRemote(other.store.rawItems({ limit: 1_000 }).items);
  await make(store, "own.test.");
  await make(store, "waiting.test.", "pending");
  await store.write((tx) => {
    const notify_targets = [`127.0.0.1:${secondary.port}`];
    tx.put("config", { name: "axfr", settings: { enabled: true, notify_targets, notify_debounce_seconds: 0 } });
  });
  const registry = new Registry();
  using _notify = openDnsNotify({ store, published: async () => {}, isMd5Enabled: false, registry, log: () => {} });
  await waitFor("the answers", 10_000, async () =>
    (await registry.metrics()).includes("svc_dns_notify_answered_total 2"),
  );
  assert.deepEqual(secondary.heard.map(({ zone }) => zone).sort(), [
    ...["own.test.", "own.test."],
    ...["remote.test.", "remote.test."],
  ]);
});

test("the announcements of a start wait for what other nodes wrote meanwhile", async () => {
  await using world = await temporaryStore();
  await using other = await temporaryStore({ nodeId: "other-node" });
  const { store } = world;
  using secondary = await openSecondary();
  const write = async (value: string) => {
    await other.store.write((tx) => {
      tx.put("zone", zoneBody(ZONE));
      tx.setState(ZONE, "active");
      tx.put("record", recordBody(ZONE, "www", { values: [{ value }] }));
    });
    await store.applyRemote(other.store.rawItems({ limit: 1_000 }).items);
  };
  await write("10.0.0.1");
  await store.write((tx) => {
    const notify_targets = [`127.0.0.1:${secondary.port}`];
    tx.put("config", { name: "axfr", settings: { enabled: true, notify_targets, notify_debounce_seconds: 0 } });
  });
  const parts = { store, published: async () => {}, isMd5Enabled: false, log: () => {} };
  const { promise, resolve } = Promise.withResolvers<void>();
  const registry = new Registry();
  const caughtUp = () => promise;
  {
    using _ended = openDnsNotify({ ...parts, caughtUp, registry: new Registry() });
  }
  using _notify = openDnsNotify({ ...parts, caughtUp, registry });
  await write("10.0.0.2");
  resolve();
  await waitFor("the answer", 10_000, async () =>
    (await registry.metrics()).includes("svc_dns_notify_answered_total 1"),
  );
  // The first message is lost, and none is of what has ended.
  const serial = store.serialOf(ZONE);
  assert.deepEqual(
    secondary.heard.map((heard) => heard.serial),
    [serial, serial],
  );
});

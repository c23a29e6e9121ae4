import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import { recordBody, zoneBody } from "../../tests/support/store-objects.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { decodeMessage } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { rdataToText } from "../dns/rdata.ts";
import { typeToText } from "../dns/type-names.ts";
import type { RecordBody } from "../model/objects.ts";
import type { EncodedTransfer } from "../primary/axfr-encode.ts";
import type { NodeStore } from "../store/open-store.ts";
import { createTransferPool, type TransferPool, type TransferPoolOptions } from "./transfer-pool.ts";

const ZONE = "corp.test.";

async function world(options: Partial<TransferPoolOptions> = {}) {
  const opened = await temporaryStore();
  const { store, directory } = opened;
  const pool = createTransferPool({ directory, store, ...options });
  await store.write((tx) => {
    tx.put("zone", zoneBody(ZONE, { default_ttl: 300 }));
    tx.setState(ZONE, "active");
  });
  return {
    store,
    directory,
    pool,
    put: (...records: readonly RecordBody[]) => store.write((tx) => void records.map((each) => tx.put("record", each))),
    [Symbol.asyncDispose]: async () => {
      await pool[Symbol.asyncDispose]();
      await opened[Symbol.asyncDispose]();
    },
  };
}

function record(name: string, type: RecordBody["type"], extra: Partial<RecordBody> = {}): RecordBody {
  return recordBody(ZONE, name, { type, ...extra });
}

async function transferOf(pool: TransferPool, zone = ZONE): Promise<EncodedTransfer> {
  const result = await pool.encode(nameOf(zone));
  assert.ok(result.kind === "zone", JSON.stringify(result));
  return result.transfer;
}

function linesOf({ messages }: EncodedTransfer): readonly string[] {
  return messages.flatMap((bytes) => {
    const decoded = decodeMessage(bytes);
    assert.ok(decoded.kind === "message");
    return decoded.message.answers.map(
      ({ name, ttl, type, rdata }) => `${nameToText(name)} ${ttl} ${typeToText(type)} ${rdataToText(type, rdata)}`,
    );
  });
}

function soaLine(store: NodeStore): string {
  return `${ZONE} 300 SOA ns1.${ZONE} hostmaster.${ZONE} ${store.serialOf(ZONE)} 7200 900 1209600 300`;
}

test("a transfer has the stored set: every value, whatever gates or selects it, with the zone's TTL where there is none", async () => {
  await using lab = await world();
  const values = (...texts: readonly string[]) => ({ values: texts.map((value) => ({ value })) });
  const template = { protocol: "http", http_config: { headers: { authorization: "secret" } } } as const;
  await lab.put(
    record("gated", "A", { ...values("10.0.0.1", "10.0.0.2"), health_check_template: template }),
    record("weighted", "A", {
      ...values("10.0.0.3", "10.0.0.4"),
      lb_policy: { method: "weighted", value_weights: { "10.0.0.3": 100 } },
    }),
    record("several", "CNAME", values("first.example.", "second.example.")),
    record("registered", "A", { values: [], auto_populate: true }),
    record("mail", "MX", { values: [{ value: "a.example.", priority: 10 }, { value: "b.example." }], priority: 20 }),
    record("*", "TXT", { ...values("wild"), ttl: 60 }),
    record("@", "ALIAS", { ...values("elsewhere.example."), ttl: 30 }),
  );
  const transfer = await transferOf(lab.pool);
  assert.deepEqual(linesOf(transfer), [
    soaLine(lab.store),
    `${ZONE} 300 NS ns1.${ZONE}`,
    `*.${ZONE} 60 TXT "wild"`,
    `gated.${ZONE} 300 A 10.0.0.1`,
    `gated.${ZONE} 300 A 10.0.0.2`,
    `mail.${ZONE} 300 MX 10 a.example.`,
    `mail.${ZONE} 300 MX 20 b.example.`,
    `several.${ZONE} 300 CNAME first.example.`,
    `weighted.${ZONE} 300 A 10.0.0.3`,
    `weighted.${ZONE} 300 A 10.0.0.4`,
  ]);
  assert.deepEqual(
    transfer.aliases.map(({ owner, target, ttl }) => [nameToText(owner), nameToText(target), ttl]),
    [[ZONE, "elsewhere.example.", 30]],
  );
});

test("a stored apex NS takes the place of the made one, and a zone without ALIAS ends with its SOA", async () => {
  await using lab = await world();
  await lab.put(record("@", "NS", { values: [{ value: "ns.example." }] }));
  assert.deepEqual(linesOf(await transferOf(lab.pool)), [
    soaLine(lab.store),
    `${ZONE} 300 NS ns.example.`,
    soaLine(lab.store),
  ]);
});

test("a zone that is pending, unknown, or deleted since, is absent", async () => {
  await using lab = await world();
  await lab.store.write((tx) => void tx.put("zone", zoneBody("pending.test.")));
  const encoded = (zone: string) => lab.pool.encode(nameOf(zone));
  assert.deepEqual(await encoded("pending.test."), { kind: "absent" });
  assert.deepEqual(await encoded("unknown.test."), { kind: "absent" });
  assert.equal((await encoded(ZONE)).kind, "zone");
  await lab.store.write((tx) => tx.deleteZone(ZONE));
  assert.deepEqual(await encoded(ZONE), { kind: "absent" });
});

test("what was encoded is given again until the zone changes, and every write is in the next transfer", async () => {
  await using lab = await world();
  const first = await transferOf(lab.pool);
  assert.equal(await transferOf(lab.pool), first);
  for (let count = 1; count <= 20; count++) {
    await lab.put(record("www", "A", { values: [{ value: `10.0.0.${count}` }] }));
    const transfer = await transferOf(lab.pool);
    assert.equal(transfer.serial, lab.store.serialOf(ZONE));
    assert.ok(linesOf(transfer).includes(`www.${ZONE} 300 A 10.0.0.${count}`));
  }
  const { encoded, reused, patched } = lab.pool.stats();
  assert.deepEqual({ encoded, reused, patched }, { encoded: 1, reused: 21, patched: 20 });
});

test("a zone that was deleted and made anew with the same serial is another one", async () => {
  await using lab = await world();
  const make = (value: string) =>
    lab.store.write((tx) => {
      tx.put("zone", zoneBody(ZONE));
      tx.setState(ZONE, "active");
      tx.put("record", record("www", "A", { values: [{ value }] }));
      tx.setSerial(ZONE, 77);
    });
  await lab.store.write((tx) => tx.deleteZone(ZONE));
  await make("10.0.0.1");
  const former = await transferOf(lab.pool);
  await lab.store.write((tx) => tx.deleteZone(ZONE));
  await make("10.0.0.2");
  const transfer = await transferOf(lab.pool);
  assert.equal(transfer.serial, former.serial);
  assert.ok(linesOf(transfer).includes(`www.${ZONE} 3600 A 10.0.0.2`));
});

test("while writes go on, every transfer is the zone as it was at one moment", async () => {
  await using lab = await world();
  const names = Array.from({ length: 3_000 }, (_, index) => `host${index}`);
  let isOver = false;
  /** Every record of the zone has the same value after each transaction. */
  const writing = (async () => {
    for (let round = 1; !isOver; round++) {
      const values = [{ value: `10.0.${round >> 8}.${round & 0xff}` }];
      await lab.put(...names.map((name) => record(name, "A", { values })));
    }
  })();
  await waitFor("the first round", 10_000, () => lab.store.count("record", ZONE) === names.length);
  const serials = new Set<number>();
  let heard = 0;
  lab.store.onChange((batch) => {
    heard = batch.serials.get(ZONE) ?? heard;
  });
  while (serials.size < 5) {
    // What is kept is given in the same turn, and the writer has its own.
    await waitFor("a further round", 10_000, () => heard > 0 && !serials.has(heard));
    const transfer = await transferOf(lab.pool);
    const addresses = linesOf(transfer).filter((line) => line.includes(" A "));
    assert.equal(addresses.length, names.length);
    assert.equal(new Set(addresses.map((line) => line.split(" ").at(-1))).size, 1);
    serials.add(transfer.serial);
  }
  isOver = true;
  await writing;
});

test("requests for one zone that come together are encoded together; those for many wait their turn", async () => {
  await using lab = await world();
  const zones = Array.from({ length: 20 }, (_, index) => `zone${index}.test.`);
  await lab.store.write((tx) => {
    for (const zone of zones) {
      tx.put("zone", zoneBody(zone));
      tx.setState(zone, "active");
    }
  });
  const all = await Promise.all([...zones, ...zones, ...zones].map((zone) => transferOf(lab.pool, zone)));
  assert.equal(all.length, 60);
  assert.ok(lab.pool.stats().encoded <= 22);
  assert.equal(lab.pool.stats().threads, 2);
});

test("what is kept is bounded, and forgotten after a time with its threads", async () => {
  await using lab = await world({ keptBytesMax: 1_000, keptMs: 50, idleMs: 50 });
  await transferOf(lab.pool);
  assert.equal(lab.pool.stats().keptZones, 1);
  await lab.store.write((tx) => {
    tx.put("zone", zoneBody("large.test."));
    tx.setState("large.test.", "active");
    tx.put("record", recordBody("large.test.", "x", { type: "TXT", values: [{ value: "x".repeat(2_000) }] }));
  });
  await transferOf(lab.pool, "large.test.");
  assert.ok(lab.pool.stats().keptBytes <= 1_000);
  await waitFor("nothing is left", 5_000, () => lab.pool.stats().keptZones + lab.pool.stats().threads === 0);
  await transferOf(lab.pool);
});

test("a thread that runs out of memory fails its transfer, and writes and transfers go on", async () => {
  await using lab = await world({ heapMb: 10 });
  const values = [{ value: `${"long".repeat(15)}.elsewhere.example.` }];
  const names = Array.from({ length: 25_000 }, (_, index) => `alias${index}`);
  await lab.put(...names.map((name) => record(name, "ALIAS", { values })));
  assert.equal((await lab.pool.encode(nameOf(ZONE))).kind, "failed");
  await lab.store.write((tx) => {
    tx.put("zone", zoneBody("small.test."));
    tx.setState("small.test.", "active");
  });
  assert.equal((await transferOf(lab.pool, "small.test.")).serial, lab.store.serialOf("small.test."));
});

test("a zone that takes too long to encode is given up, and others are not", async () => {
  await using lab = await world({ encodingMs: 5_000 });
  await transferOf(lab.pool);
  await using hasty = createTransferPool({ directory: lab.directory, store: lab.store, encodingMs: 0 });
  assert.deepEqual(await hasty.encode(nameOf(ZONE)), { kind: "failed", detail: "the zone takes too long to encode" });
});

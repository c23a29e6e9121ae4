import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { OperatorError } from "../../src/base/errors.ts";
import type { HealthCheckBody, TsigKeyBody, UserBody } from "../../src/model/objects.ts";
import { openStore, type StoreOptions } from "../../src/store/open-store.ts";
import { temporaryStore } from "../support/store.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";

const SECRETS = [
  ...["hash-of-a-password", "c2VjcmV0LW9mLXRzaWc=", "value-of-a-header"],
  ...["header-of-a-check", "secret-of-a-client", "key-of-a-client"],
];

const user: UserBody = {
  id: "usr_1",
  username: "alice",
  role: "admin",
  enabled: true,
  password_hash: "hash-of-a-password",
};
const tsigKey: TsigKeyBody = {
  id: "tsk_1",
  name: "key.",
  algorithm: "hmac-sha256",
  secret: "c2VjcmV0LW9mLXRzaWc=",
  management_view: false,
};
const record = recordBody("corp.", "a", {
  health_check_template: { protocol: "http", http_config: { headers: { "X-Key": "value-of-a-header" } } },
});
const healthCheck: HealthCheckBody = {
  id: "chk_1",
  name: "billing",
  protocol: "https",
  target: "app.example:443",
  interval_seconds: 15,
  timeout_seconds: 5,
  failure_threshold: 3,
  http_config: {
    headers: { "X-Key": "header-of-a-check" },
    oauth2: { token_url: "https://login.example/", client_id: "id", client_secret: "secret-of-a-client" },
    mtls: { cert_pem: "public", key_pem: "key-of-a-client" },
  },
};

type Place = Disposable & {
  readonly open: (options: Pick<StoreOptions, "secretKey" | "previousFileKey">) => ReturnType<typeof openStore>;
  readonly bytes: () => Buffer;
};

function makePlace(): Place {
  const directory = mkdtempSync(join(tmpdir(), "signpost-secrets-"));
  return {
    open: (options) => openStore({ directory, nodeId: "n1", ...options }),
    bytes: () => readFileSync(join(directory, "store", "data.mdb")),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

async function fill(place: Place, options: Pick<StoreOptions, "secretKey">): Promise<void> {
  await using store = await place.open(options);
  await store.write((tx) => {
    tx.put("user", user);
    tx.put("tsig-key", tsigKey);
    tx.put("zone", zoneBody("corp."));
    tx.put("record", record);
    tx.put("healthcheck", healthCheck);
  });
}

async function check(place: Place, options: Pick<StoreOptions, "secretKey" | "previousFileKey">): Promise<void> {
  await using store = await place.open(options);
  assert.deepEqual(store.get("user", ["alice"])?.body, user);
  assert.deepEqual(store.byId("tsig-key", "tsk_1")?.body, tsigKey);
  assert.deepEqual(store.list("record", { limit: 10 })[0]?.body, record);
  assert.deepEqual(store.byId("healthcheck", "chk_1")?.body, healthCheck);
}

const fileKey = randomBytes(32);
const clusterKey = randomBytes(32);
const byFile = { kind: "file", key: fileKey } as const;
const byCluster = { kind: "cluster", key: clusterKey } as const;

test("secrets are not on the disk as they are, and are read as they were", async () => {
  using place = makePlace();
  await fill(place, { secretKey: byFile });
  const bytes = place.bytes();
  for (const secret of SECRETS) assert.equal(bytes.indexOf(secret), -1, secret);
  assert.ok(bytes.indexOf("alice") >= 0);
  await check(place, { secretKey: byFile });
});

test("nobody else may enter the folder of the store", async () => {
  await using temporary = await temporaryStore();
  assert.equal(statSync(join(temporary.directory, "store")).mode & 0o077, 0);
});

test("the first cluster key seals everything anew, and from then on only it opens the store", async () => {
  using place = makePlace();
  await fill(place, { secretKey: byFile });
  await check(place, { secretKey: byCluster, previousFileKey: fileKey });
  await check(place, { secretKey: byCluster, previousFileKey: fileKey });
  await check(place, { secretKey: byCluster });
  const before = place.bytes();
  await assert.rejects(place.open({ secretKey: byFile }), (thrown) => {
    assert.ok(thrown instanceof OperatorError);
    assert.match(thrown.message, /replication\.encrypt_key is missing/);
    return true;
  });
  const other = { kind: "cluster", key: randomBytes(32) } as const;
  await assert.rejects(
    place.open({ secretKey: other, previousFileKey: fileKey }),
    /replication\.encrypt_key does not match .* \(where nothing in it is needed, start with an empty data directory\)/,
  );
  assert.ok(before.equals(place.bytes()), "a refused start changed the store");
  await check(place, { secretKey: byCluster });
});

test("another key file does not open the store, and neither does a cluster key without the right one", async () => {
  using place = makePlace();
  await fill(place, { secretKey: byFile });
  const before = place.bytes();
  await assert.rejects(place.open({ secretKey: { kind: "file", key: randomBytes(32) } }), /key file/);
  await assert.rejects(place.open({ secretKey: byCluster }), OperatorError);
  await assert.rejects(place.open({ secretKey: byCluster, previousFileKey: randomBytes(32) }), OperatorError);
  assert.ok(before.equals(place.bytes()), "a refused start changed the store");
  await check(place, { secretKey: byFile });
});

test("an edit that leaves the secret as it was changes nothing", async () => {
  using place = makePlace();
  await fill(place, { secretKey: byFile });
  await using store = await place.open({ secretKey: byFile });
  const before = store.get("user", ["alice"])?.stamp;
  const after = await store.write((tx) => tx.put("user", { ...user }).stamp);
  assert.equal(after, before);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulatedClock } from "../../tests/support/simulated-clock.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { OperatorError } from "../base/errors.ts";
import { createFirstAdmin, ensureAdmin, resetAdminPassword } from "./first-admin.ts";
import { createPasswords } from "./passwords.ts";
import { newId } from "./run.ts";

const PASSWORD = "a password of an operator";

test("the first start draws a password once, and the admin loses to any edit", async () => {
  await using temporary = await temporaryStore();
  const { store, context } = temporary;
  const password = await ensureAdmin(context);
  assert.match(password ?? "", /^[\w-]{24}$/);
  const admin = store.get("user", ["admin"]);
  assert.equal(admin?.stamp, "");
  assert.equal(admin?.body.role, "admin");
  assert.equal(await createPasswords().verify(password ?? "", admin?.body.password_hash), true);
  assert.equal(await ensureAdmin(context), undefined);
  assert.equal(await ensureAdmin(context, { initialPassword: PASSWORD }), undefined);
  assert.deepEqual(store.get("user", ["admin"]), admin);
});

test("a configured first password is taken and not given back; a weak one is refused", async () => {
  await using temporary = await temporaryStore();
  const { store, context } = temporary;
  await assert.rejects(ensureAdmin(context, { initialPassword: "short" }), (error) => {
    assert.ok(error instanceof OperatorError);
    return /auth\.initial_admin_password must have at least 16 characters/.test(error.message);
  });
  assert.equal(store.count("user"), 0);
  assert.equal(await ensureAdmin(context, { initialPassword: PASSWORD }), undefined);
  const hash = store.get("user", ["admin"])?.body.password_hash;
  assert.equal(await createPasswords().verify(PASSWORD, hash), true);
});

test("break-glass enables the admin with the new password and ends all its sessions, and leaves an entry", async () => {
  await using temporary = await temporaryStore();
  const { store, context } = temporary;
  await ensureAdmin(context);
  const admin = store.get("user", ["admin"])?.body;
  assert.ok(admin !== undefined);
  const other = newId("user");
  await store.write((tx) => {
    tx.put("user", { ...admin, enabled: false, role: "readonly" });
    for (const user_id of [admin.id, admin.id, other]) {
      tx.put("session", { id: newId("session"), user_id, generation: 1, rotated_at: 1, revoked: false });
    }
  });
  await assert.rejects(resetAdminPassword(store, "short"), OperatorError);
  await resetAdminPassword(store, PASSWORD);
  const after = store.get("user", ["admin"])?.body;
  assert.deepEqual([after?.id, after?.enabled, after?.role], [admin.id, true, "admin"]);
  assert.notEqual(after?.session_epoch, admin.session_epoch);
  assert.equal(await createPasswords().verify(PASSWORD, after?.password_hash), true);
  assert.deepEqual(
    store.list("session", { limit: 10 }).map(({ body }) => body.user_id),
    [other],
  );
  const [entry] = store.auditPage({}, { limit: 1 }).entries;
  assert.deepEqual([entry?.action, entry?.resource_name, entry?.user_name], ["reset-password", "admin", "system"]);
});

test("break-glass makes the admin where there is none, and takes one back from the identity provider", async () => {
  await using temporary = await temporaryStore();
  const { store } = temporary;
  await store.write((tx) =>
    tx.put("user", { id: newId("user"), username: "admin", role: "readonly", enabled: true, idp_subject: "i s" }),
  );
  await resetAdminPassword(store, PASSWORD);
  assert.equal(store.get("user", ["admin"])?.body.idp_subject, undefined);
  await store.write((tx) => tx.delete("user", ["admin"]));
  await resetAdminPassword(store, PASSWORD);
  assert.equal(store.get("user", ["admin"])?.body.role, "admin");
});

async function joining(aliveNodes: readonly string[], initialPassword?: string) {
  const temporary = await temporaryStore({ nodeId: "b" });
  const clock = createSimulatedClock();
  const passwords: string[] = [];
  const admin = createFirstAdmin({
    ...{ context: temporary.context, initialPassword, aliveNodes: () => aliveNodes, after: clock.after },
    onPassword: (password) => passwords.push(password),
  });
  return { ...temporary, clock, passwords, admin };
}

test("a node that joins makes no admin before it has synced, and none where the cluster has users", async () => {
  await using other = await temporaryStore({ nodeId: "a" });
  await using node = await joining(["a", "b"]);
  await node.admin.atStart(true);
  assert.equal(node.store.count("user"), 0);
  await ensureAdmin(other.context);
  await node.store.applyRemote(other.store.rawItems({ limit: 10 }).items, { firstSync: true });
  await node.admin.afterSync();
  assert.deepEqual(node.passwords, []);
  assert.deepEqual(node.store.get("user", ["admin"])?.body.id, other.store.get("user", ["admin"])?.body.id);
  assert.equal(node.store.count("user"), 1);
});

test("where all began empty the first node makes the admin, and the next one only where that brings none", async () => {
  await using first = await joining(["c", "b"]);
  await first.admin.atStart(true);
  await first.admin.afterSync();
  assert.equal(first.passwords.length, 1);
  await using second = await joining(["a", "b"]);
  await second.admin.atStart(true);
  const synced = second.admin.afterSync();
  await second.clock.pass(29_000);
  assert.equal(second.store.count("user"), 0);
  await second.clock.pass(2_000);
  await synced;
  assert.equal(second.passwords.length, 1);
  await using third = await joining(["a", "b"]);
  const waiting = third.admin.afterSync();
  await third.store.applyRemote(first.store.rawItems({ limit: 10 }).items);
  await waiting;
  assert.deepEqual(third.passwords, []);
});

test("a node alone makes its admin at the start, and a weak password is refused there also by one that joins", async () => {
  await using alone = await joining([]);
  await alone.admin.atStart(false);
  assert.equal(alone.passwords.length, 1);
  await using weak = await joining(["a", "b"], "short");
  await assert.rejects(weak.admin.atStart(true), OperatorError);
});

test("a fresh node that joins displaces neither the admin nor the settings of the cluster, whoever hears first", async () => {
  await using cluster = await temporaryStore({ nodeId: "z" });
  await using fresh = await temporaryStore({ nodeId: "a", now: () => Date.now() + 1_000 });
  await using renewed = await temporaryStore({ nodeId: "m", now: () => Date.now() - 5_000 });
  const settings = { name: "rate-limits", settings: { read: 5 } };
  await ensureAdmin(cluster.context, { initialPassword: PASSWORD });
  await cluster.store.write((tx) => void tx.put("config", settings));
  const { body } = cluster.store.get("user", ["admin"]) ?? assert.fail();
  await ensureAdmin(fresh.context);
  const exchange = async (one: typeof cluster, other: typeof cluster) => {
    const [mine, theirs] = [one, other].map(({ store }) => store.rawItems({ limit: 100 }).items);
    await one.store.applyRemote(theirs ?? []);
    await other.store.applyRemote(mine ?? []);
  };
  await exchange(cluster, fresh);
  for (const { store } of [cluster, fresh]) {
    assert.deepEqual(store.get("user", ["admin"])?.body, body);
    assert.deepEqual(store.get("config", ["rate-limits"])?.body, settings);
    assert.equal(store.count("user"), 1);
  }
  // Once the password was changed, not even an older node's own admin wins.
  await resetAdminPassword(cluster.store, `${PASSWORD}, anew`);
  const changed = cluster.store.get("user", ["admin"])?.body;
  await ensureAdmin(renewed.context);
  await exchange(renewed, cluster);
  for (const { store } of [cluster, renewed]) assert.deepEqual(store.get("user", ["admin"])?.body, changed);
});

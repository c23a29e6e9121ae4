import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../tests/support/store.ts";
import { OperatorError } from "../base/errors.ts";
import { ensureAdmin, resetAdminPassword } from "./first-admin.ts";
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

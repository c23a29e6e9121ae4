import assert from "node:assert/strict";
import { test } from "node:test";
import { passwordOf, startSignInApi } from "../../../tests/support/sign-in.ts";

test("an admin makes, reads, changes and deletes users; no answer and no audit entry has a password or its hash", async () => {
  await using api = await startSignInApi();
  const json = { username: "Alice", password: passwordOf("alice"), role: "editor" };
  const made = await api.ask("POST", "/users", { json });
  assert.equal(made.status, 200);
  const { id } = made.body;
  assert.deepEqual(made.body, { id, username: "alice", role: "editor", enabled: true, source: "local" });
  assert.equal(made.headers.location, `/api/v1/users/${id}`);
  const read = await api.ask("GET", `/users/${id}`);
  assert.deepEqual(read.body, made.body);
  assert.equal(read.headers.etag, made.headers.etag);
  // GET, edit, PUT.
  const changed = await api.ask("PUT", `/users/${id}`, { json: { ...read.body, role: "readonly" } });
  assert.deepEqual(changed.body, { ...made.body, role: "readonly" });
  const listed = await api.ask("GET", "/users");
  assert.deepEqual(
    listed.body.items.map(({ username }: { username: string }) => username),
    ["admin", "alice"],
  );
  const page = await api.ask("GET", "/users?limit=1");
  assert.equal(
    (await api.ask("GET", `/users?limit=1&cursor=${page.body.next_cursor}`)).body.items[0].username,
    "alice",
  );
  const gone = await api.ask("DELETE", `/users/${id}`);
  assert.deepEqual(gone.body, { deleted: true, id });
  assert.equal((await api.ask("GET", `/users/${id}`)).status, 404);
  const audit = api.store.auditPage({ resource: "user" }, { limit: 100 }).entries;
  assert.deepEqual(
    audit.map(({ action }) => action),
    ["delete", "update", "create", "create"],
  );
  for (const text of [made.text, listed.text, JSON.stringify(audit)]) {
    assert.equal(text.includes("argon2"), false);
    assert.equal(text.includes(passwordOf("alice")), false);
  }
});

test("what takes rights away takes effect with the next request", async () => {
  await using api = await startSignInApi();
  const id = await api.makeUser("bob", "admin");
  const change = (json: unknown) => api.ask("PUT", `/users/${id}`, { json });
  const demoted = await api.tokensOf("bob");
  assert.equal(await api.status(demoted.access), 200);
  await change({ role: "editor" });
  assert.equal(await api.status(demoted.access), 403);
  await change({ role: "admin" });
  assert.equal(await api.status(demoted.access), 200);
  await change({ password: "another long password" });
  assert.equal(await api.status(demoted.access), 401);
  assert.equal((await api.login("bob", passwordOf("bob"))).status, 401);
  const disabled = await api.tokensOf("bob", "another long password");
  await change({ enabled: false });
  assert.equal(await api.status(disabled.access), 401);
  await change({ enabled: true });
  assert.equal(await api.status(disabled.access), 401, "sessions do not come back");
  const refreshed = await api.ask("POST", "/auth/refresh", { as: null, json: { refresh_token: disabled.refresh } });
  assert.equal(refreshed.status, 401);
  const deleted = await api.tokensOf("bob", "another long password");
  await api.ask("DELETE", `/users/${id}`);
  assert.equal(await api.status(deleted.access), 401);
  await api.makeUser("bob", "admin");
  assert.equal(await api.status(deleted.access), 401, "a user of the same name is another user");
});

test("there is always an enabled admin with a password", async () => {
  await using api = await startSignInApi();
  const { id } = (await api.ask("GET", "/users")).body.items[0];
  const attempts = [
    () => api.ask("PUT", `/users/${id}`, { json: { enabled: false } }),
    () => api.ask("PUT", `/users/${id}`, { json: { role: "editor" } }),
    () => api.ask("DELETE", `/users/${id}`),
  ];
  for (const attempt of attempts) {
    const { status, body } = await attempt();
    assert.deepEqual([status, body.code], [409, "conflict"]);
  }
  const other = await api.makeUser("root", "admin");
  await api.ask("PUT", `/users/${other}`, { json: { enabled: false } });
  assert.equal((await api.ask("DELETE", `/users/${id}`)).status, 409, "a disabled admin does not count");
  await api.ask("PUT", `/users/${other}`, { json: { enabled: true } });
  assert.equal((await api.ask("DELETE", `/users/${id}`)).status, 200);
});

test("bad fields are named, and nothing changes", async () => {
  await using api = await startSignInApi();
  const id = await api.makeUser("alice", "editor");
  const good = { username: "bob", password: "a long enough password", role: "editor" };
  const creates: [unknown, string, number][] = [
    [{ ...good, password: "fifteen letters" }, "/password", 400],
    [{ ...good, password: "x".repeat(1025) }, "/password", 400],
    [{ ...good, password: "BobBobBobBobBobBob", username: "bobbobbobbobbobbob" }, "/password", 400],
    [{ ...good, username: "" }, "/username", 400],
    [{ ...good, username: "bob smith" }, "/username", 400],
    [{ ...good, username: "-bob" }, "/username", 400],
    [{ ...good, username: "b\u212Aob" }, "/username", 400],
    [{ ...good, username: "ALICE" }, "/username", 409],
    [{ ...good, role: "root" }, "/role", 400],
    [{ ...good, enabled: "yes" }, "/enabled", 400],
    [{ ...good, password_hash: "x" }, "/password_hash", 400],
    [{ username: "bob", role: "editor" }, "/password", 400],
  ];
  const before = (await api.ask("GET", "/users")).text;
  for (const [json, pointer, status] of creates) {
    const reply = await api.ask("POST", "/users", { json });
    assert.equal(reply.status, status, JSON.stringify(json));
    assert.equal(reply.body.errors[0].pointer, pointer);
  }
  const updates: [unknown, string][] = [
    [{ username: "carol" }, "/username"],
    [{ id: "usr_x" }, "/id"],
    [{ source: "idp" }, "/source"],
    [{ password: "short" }, "/password"],
    [{ password: "***" }, "/password"],
    [{ role: null }, "/role"],
  ];
  for (const [json, pointer] of updates) {
    const reply = await api.ask("PUT", `/users/${id}`, { json });
    assert.equal(reply.status, 400, JSON.stringify(json));
    assert.equal(reply.body.errors[0].pointer, pointer);
  }
  assert.equal((await api.ask("PUT", "/users/usr_none", { json: {} })).status, 404);
  assert.equal(
    (await api.ask("PUT", `/users/${id}`, { json: { role: "admin" }, headers: { "if-match": '"x"' } })).status,
    412,
  );
  assert.equal((await api.ask("PUT", `/users/${id}?dry_run=true`, { json: { role: "admin" } })).body.role, "admin");
  assert.equal((await api.ask("GET", "/users")).text, before);
});

test("sixteen characters are counted as characters", async () => {
  await using api = await startSignInApi();
  const make = (username: string, password: string) =>
    api.ask("POST", "/users", { json: { username, password, role: "readonly" } });
  assert.equal((await make("cat", "\u{1F431}".repeat(15))).status, 400);
  assert.equal((await make("cat", "\u{1F431}".repeat(16))).status, 200);
  assert.equal((await api.login("cat", "\u{1F431}".repeat(16))).status, 200);
});

test("only admins see or change users", async () => {
  await using api = await startSignInApi();
  for (const role of ["readonly", "editor"] as const) {
    await api.makeUser(role, role);
    const { access } = await api.tokensOf(role);
    for (const [method, path] of [
      ["GET", "/users"],
      ["GET", "/users/usr_x"],
      ["POST", "/users"],
      ["PUT", "/users/usr_x"],
      ["DELETE", "/users/usr_x"],
    ] as const) {
      const { status, body } = await api.ask(method, path, { as: access });
      assert.deepEqual([status, body.code], [403, "role_insufficient"], `${role} ${method} ${path}`);
    }
  }
});

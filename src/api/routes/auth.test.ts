import assert from "node:assert/strict";
import { test } from "node:test";
import { SignJWT } from "jose";
import { passwordOf, SIGNING_KEY, startSignInApi } from "../../../tests/support/sign-in.ts";
import { deriveKey } from "../../commands/tokens.ts";

test("a login gives tokens and a cookie, and each of them opens the API", async () => {
  await using api = await startSignInApi();
  const { status, body, headers } = await api.login("Admin", passwordOf("admin"));
  assert.equal(status, 200);
  assert.equal(body.token_type, "Bearer");
  assert.equal(body.expires_in, 86_400);
  assert.equal(body.user.username, "admin");
  assert.deepEqual(Object.keys(body.user).sort(), ["enabled", "id", "role", "source", "username"]);
  assert.equal(headers["cache-control"], "no-store");
  const cookie = String(headers["set-cookie"]);
  assert.match(cookie, /^svc_session=[\w.-]+; Path=\/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict$/);
  assert.equal(await api.status(body.access_token), 200);
  const withCookie = await api.ask("GET", "/users", { as: null, headers: { cookie: cookie.split(";")[0] ?? "" } });
  assert.equal(withCookie.status, 200);
  assert.equal((await api.ask("GET", "/users", { as: null })).status, 401);
});

test("unknown user, wrong password, disabled user: one answer, and each in the audit log without a password", async () => {
  await using api = await startSignInApi();
  const id = await api.makeUser("alice", "editor");
  await api.ask("PUT", `/users/${id}`, { json: { enabled: false } });
  const answers = [
    await api.login("nobody", "some long password"),
    await api.login("admin", "some long password"),
    await api.login("alice", passwordOf("alice")),
    await api.login("not a name \u0000", "some long password"),
  ];
  const [first] = answers;
  for (const { status, body, headers } of answers) {
    assert.equal(status, 401);
    assert.deepEqual(body, first?.body);
    assert.equal(headers["set-cookie"], undefined);
  }
  const failures = api.audit("login").filter(({ result }) => result === "failure");
  assert.deepEqual(failures.map(({ resource_name }) => resource_name).reverse(), ["nobody", "admin", "alice", ""]);
  assert.equal(JSON.stringify(failures).includes('password"'), false);
  assert.equal(JSON.stringify(failures).includes("long password"), false);
});

test("an unknown user takes as much work as a wrong password", async () => {
  await using api = await startSignInApi();
  const times = { admin: [0], nobody: [0] };
  // Time of the processor, for what else the machine does takes no part of it.
  for (let round = 0; round < 11; round++) {
    for (const username of ["admin", "nobody"] as const) {
      const before = process.cpuUsage();
      await api.login(username, "some long password");
      const { user, system } = process.cpuUsage(before);
      times[username].push((user + system) / 1000);
    }
  }
  const median = (list: readonly number[]) => list.toSorted((one, other) => one - other)[6] ?? 0;
  const [known, unknown] = [median(times.admin), median(times.nobody)];
  // Without the same work it would be a tenth.
  assert.ok(unknown > known / 2 && unknown < known * 2, `${known} ms and ${unknown} ms`);
});

test("a flood of failures is counted, not written down one by one", async () => {
  await using api = await startSignInApi();
  // Five seconds into a minute to come, of which nearly all has been written.
  api.clock.aheadMs = 10 * 60_000 - (Date.now() % 60_000) + 5_000;
  const minute = Math.floor(api.signIn.context.now() / 60_000);
  const day = Math.floor(minute / 1440);
  Object.assign(api.signIn.failures, { minute, day, writtenInMinute: 598 });
  for (let round = 0; round < 5; round++) await api.login("nobody", "some long password");
  const failures = () => api.audit("login").filter(({ result }) => result === "failure");
  const written = failures().length;
  assert.equal(written, 2);
  api.clock.aheadMs += 60_000;
  await api.login("nobody", "some long password");
  assert.equal(failures().length, written + 1);
  assert.match(failures()[0]?.detail ?? "", /^3 failures before this one/);
});

test("a flood of failures all day is written down once an hour", async () => {
  await using api = await startSignInApi();
  // Five minutes into a day to come, of which nearly all has been written.
  api.clock.aheadMs = 3 * 86_400_000 - (Date.now() % 86_400_000) + 300_000;
  const hour = Math.floor(api.signIn.context.now() / 3_600_000);
  Object.assign(api.signIn.failures, { hour, day: Math.floor(hour / 24), writtenInDay: 19_999 });
  const details = () =>
    api
      .audit("login")
      .filter(({ result }) => result === "failure")
      .map(({ detail }) => detail ?? "");
  const failOften = async () => {
    for (let round = 0; round < 3; round++) await api.login("nobody", "some long password");
  };
  await failOften();
  assert.equal(details().length, 1);
  api.clock.aheadMs += 120_000;
  await failOften();
  assert.equal(details().length, 1, "another minute of the day");
  api.clock.aheadMs += 3_600_000;
  await failOften();
  assert.equal(details().length, 2);
  assert.match(details()[0] ?? "", /5 failures before this one/);
  api.clock.aheadMs += 86_400_000;
  await failOften();
  assert.equal(details().length, 5, "a new day");
});

test("a refresh token holds once; a lost answer may be asked for again, for a minute", async () => {
  await using api = await startSignInApi();
  const refresh = (token: string) => api.ask("POST", "/auth/refresh", { as: null, json: { refresh_token: token } });
  const first = await api.tokensOf("admin");
  const second = (await refresh(first.refresh)).body;
  assert.equal(await api.status(second.access_token), 200);
  const again = await refresh(first.refresh);
  assert.equal(again.status, 200);
  const third = (await refresh(second.refresh_token)).body;
  assert.equal(await api.status(third.access_token), 200);
  const stolen = await refresh(first.refresh);
  assert.equal(stolen.status, 401);
  assert.equal(await api.status(third.access_token), 401);
  assert.equal((await refresh(third.refresh_token)).status, 401);
  const [entry] = api.audit("refresh-reuse");
  assert.equal(entry?.user_name, "admin");
  assert.equal(entry?.result, "failure");
});

test("the refresh token before the newest ends the session after a minute, in a dry run too", async () => {
  await using api = await startSignInApi();
  const { access, refresh } = await api.tokensOf("admin");
  const ask = (query = "") => api.ask("POST", `/auth/refresh${query}`, { as: null, json: { refresh_token: refresh } });
  assert.equal((await ask()).status, 200);
  api.clock.aheadMs = 61_000;
  assert.equal((await ask("?dry_run=true")).status, 401);
  assert.equal(await api.status(access), 401);
  assert.equal(api.audit("refresh-reuse").length, 1);
});

test("tokens end: access after a day, a session after a week without use", async () => {
  await using api = await startSignInApi();
  const { access, refresh } = await api.tokensOf("admin");
  api.clock.aheadMs = 86_400_000 - 60_000;
  assert.equal(await api.status(access), 200);
  api.clock.aheadMs = 86_400_000 + 60_000;
  assert.equal(await api.status(access), 401);
  const ask = (token: string) => api.ask("POST", "/auth/refresh", { as: null, json: { refresh_token: token } });
  api.clock.aheadMs = 6 * 86_400_000;
  const renewed = await ask(refresh);
  assert.equal(renewed.status, 200);
  api.clock.aheadMs = 14 * 86_400_000;
  assert.equal((await ask(renewed.body.refresh_token)).status, 401);
});

test("logout ends the session of its refresh token, or the request's own, and nobody else's", async () => {
  await using api = await startSignInApi();
  await api.makeUser("alice", "readonly");
  const [alice, admin] = [await api.tokensOf("alice"), await api.tokensOf("admin")];
  const logout = (as: string | null, json?: unknown, headers = {}) =>
    api.ask("POST", "/auth/logout", { as, headers, ...(json === undefined ? {} : { json }) });
  const foreign = await logout(alice.access, { refresh_token: admin.refresh });
  assert.equal(foreign.status, 403);
  assert.equal(foreign.body.code, "role_insufficient");
  assert.equal(await api.status(admin.access), 200);
  const done = await logout(null, { refresh_token: admin.refresh });
  assert.deepEqual([done.status, done.body], [200, { ended: true }]);
  assert.match(String(done.headers["set-cookie"]), /^svc_session=; Path=\/; Max-Age=0;/);
  assert.equal(await api.status(admin.access), 401);
  assert.equal((await logout(null, { refresh_token: admin.refresh })).status, 200);
  assert.equal((await logout(null)).status, 400);
  assert.equal((await logout(null, { refresh_token: "nonsense" })).status, 401);
  const stale = await api.tokensOf("admin");
  assert.equal(
    (await logout("expired", { refresh_token: stale.refresh })).status,
    200,
    "bad credentials do not matter",
  );
  assert.equal(await api.status(stale.access), 401);
  assert.equal((await logout("expired")).status, 401);
  const byCookie = await logout(null, undefined, { cookie: `other=1; svc_session=${alice.access}` });
  assert.equal(byCookie.status, 200);
  assert.equal(await api.status(alice.access), 401);
  assert.deepEqual(
    api
      .audit("logout")
      .map(({ user_name }) => user_name)
      .reverse(),
    ["admin", "admin", "alice"],
  );
});

test("a dry run of a login checks the password and hands out nothing", async () => {
  await using api = await startSignInApi();
  const sessions = api.store.count("session");
  const json = { username: "admin", password: passwordOf("admin") };
  const { status, body, headers } = await api.ask("POST", "/auth/login?dry_run=true", { as: null, json });
  assert.equal(status, 200);
  assert.equal(body.access_token ?? body.refresh_token ?? headers["set-cookie"], undefined);
  assert.equal(api.store.count("session"), sessions);
  assert.equal(api.audit("login")[0]?.detail, "dry run");
});

test("foreign, altered and mistaken tokens open nothing", async () => {
  await using api = await startSignInApi();
  const { access, refresh } = await api.tokensOf("admin");
  const [head, claims, signature] = access.split(".");
  const payload = JSON.parse(Buffer.from(claims ?? "", "base64url").toString());
  const signed = (key: Uint8Array, header: object, changes: object) =>
    new SignJWT({ ...payload, ...changes })
      .setProtectedHeader({ alg: "HS256", typ: "at+jwt", ...header })
      .sign(deriveKey(key, "access token"));
  const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url");
  const flipped = signature?.startsWith("A") ? `B${signature.slice(1)}` : `A${signature?.slice(1)}`;
  const tokens = [
    refresh,
    `${head}.${claims}.${flipped}`,
    `${none}.${claims}.`,
    `${none}.${claims}.${signature}`,
    await signed(new Uint8Array(32).fill(8), {}, {}),
    await signed(SIGNING_KEY, { typ: "JWT" }, {}),
    await signed(SIGNING_KEY, { alg: "HS512" }, {}),
    await signed(SIGNING_KEY, {}, { aud: "signpost/refresh" }),
    await signed(SIGNING_KEY, {}, { iss: "elsewhere" }),
    await signed(SIGNING_KEY, {}, { exp: undefined }),
    await signed(SIGNING_KEY, {}, { sid: "ses_none" }),
    await signed(SIGNING_KEY, {}, { sid: 7 }),
    "svcsat_",
    `svcsat_${"a".repeat(20)}_${"A".repeat(43)}`,
    "x".repeat(5_000),
  ];
  for (const token of tokens) assert.equal(await api.status(token), 401, token);
  assert.equal(await api.status(await signed(SIGNING_KEY, {}, {})), 200);
  for (const authorization of ["", "Bearer", "Basic YTpi", `Bearer ${access} more`]) {
    const { status, headers } = await api.ask("GET", "/users", { as: null, headers: { authorization } });
    assert.equal(status, 401, authorization);
    assert.match(String(headers["www-authenticate"]), /^Bearer/);
  }
});

test("a user's sessions are bounded: the least lately used ends", async () => {
  await using api = await startSignInApi();
  const oldest = await api.tokensOf("admin");
  // Sign-ins take turns at the hasher; what matters is only that there are more than may be.
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 20 }, () => api.tokensOf("admin")));
  }
  assert.equal(await api.status(oldest.access), 401);
  assert.ok(api.store.count("session") <= 100);
});

test("every sign-in request needs the CSRF header and knows its fields", async () => {
  await using api = await startSignInApi();
  const json = { username: "admin", password: passwordOf("admin") };
  const bare = await api.ask("POST", "/auth/login", { as: null, json, noCsrf: true });
  assert.deepEqual([bare.status, bare.body.code], [403, "csrf_header_missing"]);
  for (const wrong of [
    {},
    { ...json, extra: 1 },
    { username: 1, password: "x" },
    { ...json, password: "x".repeat(2_000) },
    [],
    null,
  ]) {
    const { status, body } = await api.ask("POST", "/auth/login", { as: null, json: wrong });
    assert.equal(status, 400, JSON.stringify(wrong));
    assert.ok(body.errors.length > 0);
  }
});

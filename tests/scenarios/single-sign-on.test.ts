import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { openBrowser } from "../support/browser.ts";
import { type Child, startChild } from "../support/process.ts";
import { type SignInApi, startSignInApi } from "../support/sign-in.ts";
import { waitFor } from "../support/wait.ts";

const CALLBACK = "/api/v1/auth/idp/callback";
const ENTRY = fileURLToPath(new URL("../support/oidc-provider-entry.mjs", import.meta.url));

type World = AsyncDisposable & {
  readonly api: SignInApi;
  readonly provider: Child;
  readonly issuer: string;
  /** Who the provider knows from now on, by subject. */
  readonly people: (
    people: Readonly<Record<string, { readonly name: string; readonly groups: readonly string[] }>>,
  ) => void;
};

/** The API on 127.0.0.1 and the provider on localhost: two sites, as a browser sees it. */
async function startWorld(): Promise<World> {
  const api = await startSignInApi();
  const peopleFile = join(api.directory, "people.json");
  const provider = await startChild("oidc-provider", process.execPath, [ENTRY], {
    env: { REDIRECT_URI: `${api.url}${CALLBACK}`, PEOPLE_FILE: peopleFile },
  });
  const port = await waitFor("the provider's port", 20_000, () => /port (\d+)/.exec(provider.output())?.[1]);
  const issuer = `http://localhost:${port}`;
  const json = {
    enabled: true,
    issuer,
    client_id: "signpost",
    client_secret: "the secret of the client",
    scopes: ["openid", "profile", "email", "groups"],
    role_mapping: { "dns-admins": "admin", "dns-team": "editor" },
    redirect_uri: `${api.url}${CALLBACK}`,
  };
  const { status, text } = await api.ask("PUT", "/auth/idp/config", { json });
  assert.equal(status, 200, text);
  return {
    api,
    provider,
    issuer,
    people: (people) => writeFileSync(peopleFile, JSON.stringify(people)),
    [Symbol.asyncDispose]: async () => {
      await provider.stop();
      await api[Symbol.asyncDispose]();
    },
  };
}

/** Signs in as a person who has never been here: the provider's login and consent pages, filled in. */
async function signOn(browser: Browser, { api }: World, person: string, returnTo = "/api/v1/users"): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  const goesBack = page.waitForResponse((response) => response.url().includes(CALLBACK), { timeout: 30_000 });
  await page.goto(`${api.url}/api/v1/auth/idp/login?return_to=${encodeURIComponent(returnTo)}`);
  await page.fill("input[name=login]", person);
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.click("button[type=submit]");
  await goesBack;
  return page;
}

async function landed(page: Page, url: string): Promise<string> {
  await page.waitForURL(url, { timeout: 30_000 });
  return page.innerText("body");
}

test("a person signs in through the provider in a browser, with the role of its claims", async (test) => {
  const browser = await openBrowser(test);
  if (browser === undefined) return;
  await using world = await startWorld();
  const { api } = world;
  world.people({ s1: { name: "alice", groups: ["dns-team", "dns-admins"] } });
  const page = await signOn(browser, world, "s1");
  // The page is open to admins only, and the first to need the new cookie.
  const users = JSON.parse(await landed(page, `${api.url}/api/v1/users`)).items;
  const alice = users.find(({ username }: { username: string }) => username === "alice");
  assert.deepEqual([alice.role, alice.source, alice.enabled], ["admin", "idp", true]);
  const cookies = await page.context().cookies(api.url);
  const session = cookies.find(({ name }) => name === "svc_session");
  assert.deepEqual([session?.httpOnly, session?.secure, session?.sameSite, session?.path], [true, true, "Strict", "/"]);
  assert.equal(
    cookies.some(({ name }) => name === "svc_sign_in"),
    false,
  );
  const [entry] = api.audit("login");
  assert.deepEqual([entry?.user_name, entry?.detail], ["alice", "by single sign-on"]);
  assert.equal((await api.login("alice", "no local password at all")).status, 401);

  world.people({ s1: { name: "alice", groups: ["dns-team"] } });
  await signOn(browser, world, "s1");
  const demoted = await api.ask("GET", `/users/${alice.id}`);
  assert.equal(demoted.body.role, "editor", "claims count anew at each sign-in");
  const put = (json: unknown) => api.ask("PUT", `/users/${alice.id}`, { json });
  assert.equal((await put({ role: "admin" })).body.errors[0].pointer, "/role");
  assert.equal((await put({ password: "a long enough password" })).body.errors[0].pointer, "/password");
  assert.equal((await put({ enabled: false })).status, 200);
  const refused = await signOn(browser, world, "s1");
  assert.equal(JSON.parse(await refused.innerText("body")).code, "not_authenticated");
});

test("a person without a role is refused; a name that is taken is not taken over", async (test) => {
  const browser = await openBrowser(test);
  if (browser === undefined) return;
  await using world = await startWorld();
  const { api } = world;
  world.people({ s2: { name: "carol", groups: ["other"] }, s3: { name: "admin", groups: ["dns-team"] } });
  const nobody = await signOn(browser, world, "s2");
  assert.equal(JSON.parse(await nobody.innerText("body")).code, "role_insufficient");
  assert.deepEqual((await nobody.context().cookies(api.url)).map(({ name }) => name).includes("svc_session"), false);
  await signOn(browser, world, "s3");
  const { items } = (await api.ask("GET", "/users")).body;
  assert.equal(items.length, 2);
  assert.deepEqual([items[0].username, items[0].role, items[0].source], ["admin", "admin", "local"]);
  assert.match(items[1].username, /^admin-[0-9a-f]{12}$/);
  const page = await signOn(browser, world, "s3", "https://evil.test/");
  await landed(page, `${api.url}/`);
  assert.equal((await api.ask("GET", "/users")).body.items.length, 2, "the same subject is the same user");
});

test("what comes back belongs to this browser, this attempt and these ten minutes", async () => {
  await using world = await startWorld();
  const { api, issuer, provider } = world;
  const begin = async () => {
    const { status, headers } = await api.ask("GET", "/auth/idp/login", { as: null });
    assert.equal(status, 302);
    const cookie = String(headers["set-cookie"]);
    assert.match(
      cookie,
      /^svc_sign_in=[\w.-]+; Max-Age=600; Path=\/api\/v1\/auth\/idp; HttpOnly; Secure; SameSite=Lax$/,
    );
    return { url: new URL(String(headers.location)), cookie: cookie.split(";")[0] ?? "" };
  };
  const back = async (query: string, cookie: string) => {
    const { status, body } = await api.ask("GET", `/auth/idp/callback?${query}`, { as: null, headers: { cookie } });
    return [status, body.code];
  };
  const { url, cookie } = await begin();
  assert.equal(url.origin, issuer);
  assert.equal(url.searchParams.get("code_challenge_method"), "S256");
  assert.equal(url.searchParams.get("redirect_uri"), `${api.url}${CALLBACK}`);
  for (const name of ["state", "nonce", "code_challenge"]) assert.ok((url.searchParams.get(name) ?? "").length >= 43);
  assert.equal(url.href.includes("secret"), false);
  const state = url.searchParams.get("state") ?? "";
  const iss = `iss=${encodeURIComponent(issuer)}`;
  const other = await begin();
  assert.deepEqual(await back(`code=x&state=${state}`, ""), [400, "invalid_request"]);
  assert.deepEqual(await back(`code=x&state=${state}`, other.cookie), [400, "invalid_request"], "another browser's");
  assert.deepEqual(await back("code=x", cookie), [400, "invalid_request"]);
  assert.deepEqual(await back(`code=x&state=${state}`, `${cookie.slice(0, -3)}AAA`), [400, "invalid_request"]);
  assert.deepEqual(await back(`error=access_denied&state=${state}&${iss}`, cookie), [401, "not_authenticated"]);
  assert.deepEqual(await back(`code=invented&state=${state}&${iss}`, cookie), [401, "not_authenticated"]);
  assert.deepEqual(await back(`code=x&state=${state}&iss=https://evil.test`, cookie), [502, "upstream_failed"]);
  api.clock.aheadMs = 601_000;
  assert.deepEqual(await back(`code=x&state=${state}`, cookie), [400, "invalid_request"]);
  api.clock.aheadMs = 0;
  assert.equal(api.audit("login").filter(({ result }) => result === "failure").length, 3);
  await provider.stop();
  assert.deepEqual(await back(`code=x&state=${state}&${iss}`, cookie), [502, "upstream_failed"]);
  api.clock.aheadMs = 2 * 3_600_000;
  const away = await api.ask("GET", "/auth/idp/login", { as: null });
  assert.deepEqual([away.status, away.body.code], [502, "upstream_failed"]);
});

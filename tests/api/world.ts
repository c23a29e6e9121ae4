/** The whole API with real sign-in, something of each kind in its store, and callers of every sort: who may come in, and who no more. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Route } from "../../src/api/route.ts";
import { apiRoutes } from "../../src/api/table.ts";
import type { Log } from "../../src/base/log.ts";
import { authenticateHeaders } from "../../src/commands/authenticate.ts";
import { ensureAdmin } from "../../src/commands/first-admin.ts";
import { createIdp } from "../../src/commands/idp.ts";
import { type CommandContext, newId } from "../../src/commands/run.ts";
import { createSignIn, type SignIn } from "../../src/commands/sign-in.ts";
import { type Kind, NATURAL_KEYS, type Role } from "../../src/model/objects.ts";
import { newToken } from "../../src/model/service-account.ts";
import { createImportThread } from "../../src/node/import-thread.ts";
import { LIST_PAGE_MAX, type Store } from "../../src/store/store.ts";
import { type ApiReply, type ApiRequest, startApi, type TestApi, type TestApiOptions } from "../support/api.ts";
import { explainerOver } from "../support/explainer.ts";
import { fakeCache } from "../support/fake-cache.ts";
import { createFakeCluster, TEST_LISTENERS } from "../support/fake-cluster.ts";
import { fakeDebug } from "../support/fake-debug.ts";
import { openHealthLab } from "../support/health-plane.ts";
import { temporaryStore } from "../support/store.ts";

const MINUTE_MS = 60_000;
/** It has written itself, and nobody hears of it. */
const STOPPED_NODE = "stopped-node";
const ADMIN_PASSWORD = "the first admin's password";

/** Who asks: the headers that say so, and what the one behind them may do. */
export type Asker = {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** "nobody": these credentials open nothing. */
  readonly role: Role | "nobody";
  /** Which zones a confined token may write; absent: all. */
  readonly zones?: "mine" | "dead" | "none";
};

/** What the paths of routes can lead to; two of each kind that lies in a zone, one in each of the zones. */
export type Furniture = {
  readonly zones: readonly [mine: string, other: string];
  readonly records: readonly [mine: string, other: string];
  readonly user: string;
  readonly account: string;
  readonly override: string;
  readonly mapping: string;
  readonly key: string;
  readonly check: string;
  readonly forwarder: string;
  readonly stub: string;
  readonly node: string;
  readonly conflict: string;
};

export type World = AsyncDisposable & {
  readonly api: TestApi;
  readonly routes: readonly Route[];
  readonly askers: readonly Asker[];
  readonly furniture: Furniture;
  /** Asks as the first admin; throws what does not succeed. */
  readonly make: Make;
  /** Messages of the log at level error. */
  readonly faultsLogged: readonly string[];
  /** Everything in the store but its audit log, as one hash. */
  readonly digest: () => string;
  /** Objects changed since the start, by anybody. */
  readonly changes: () => number;
  readonly ask: (method: string, path: string, asker: Asker, request?: ApiRequest) => Promise<ApiReply>;
};

function kindsOf(): readonly Kind[] {
  return Object.keys(NATURAL_KEYS).filter((kind): kind is Kind => Object.hasOwn(NATURAL_KEYS, kind));
}

function digestOf(store: Store): string {
  const hash = createHash("sha256");
  for (const kind of kindsOf()) {
    let page = store.list(kind, { limit: LIST_PAGE_MAX });
    for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
      hash.update(JSON.stringify(page));
      page = store.list(kind, { limit: LIST_PAGE_MAX, after: last.key });
    }
  }
  for (const { body } of store.list("zone", { limit: LIST_PAGE_MAX })) {
    hash.update(`${body.name} ${store.serialOf(body.name)} ${store.stateOf(body.name)}`);
  }
  return hash.digest("hex");
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Requests as the first admin, each of which has to succeed. */
function maker(api: TestApi, admin: string) {
  return async (method: string, path: string, json?: object, as = admin): Promise<ApiReply["body"]> => {
    const { status, body, text } = await api.ask(method, path, { as, ...(json === undefined ? {} : { json }) });
    assert.equal(status, 200, `${method} ${path}: ${text}`);
    return body;
  };
}

export type Make = ReturnType<typeof maker>;

/** Two zones with a record each, and one of every other kind. */
export async function furnish(make: Make, suffix = ""): Promise<Omit<Furniture, "conflict">> {
  const value = { values: [{ value: "192.0.2.1" }], type: "A" };
  const zones: string[] = [];
  const records: string[] = [];
  for (const name of [`mine${suffix}.example.`, `other${suffix}.example.`]) {
    const { id } = await make("POST", "/zones", { name });
    zones.push(id);
    records.push((await make("POST", `/zones/${id}/records`, { ...value, name: "www" })).id);
    await make("POST", `/zones/${id}/records`, { ...value, name: "kept", protected: true });
  }
  const [mine = "", other = ""] = zones;
  const [first = "", second = ""] = records;
  return {
    zones: [mine, other],
    records: [first, second],
    user: (
      await make("POST", "/users", { username: `u${suffix}`, password: `the password of u${suffix}`, role: "editor" })
    ).id,
    account: (await make("POST", "/service-accounts", { name: `robot${suffix}`, role: "editor" })).id,
    override: (await make("POST", "/overrides", { ...value, name: `www.else${suffix}.example.` })).id,
    mapping: (await make("POST", "/subnet-mappings", { subnet: subnetOf(suffix), region_id: "eu" })).id,
    key: (await make("POST", "/tsig-keys", { name: `key${suffix}.` })).name,
    check: (await make("POST", "/healthchecks", { name: `check${suffix}`, protocol: "tcp", target: "192.0.2.1:5432" }))
      .id,
    forwarder: (await make("POST", "/forwarders", { domain: `fwd${suffix}.example.`, upstreams: ["192.0.2.53"] })).id,
    stub: (await make("POST", "/stub-zones", { domain: `stub${suffix}.example.`, hints: ["192.0.2.53:53"] })).id,
    node: STOPPED_NODE,
  };
}

function subnetOf(suffix: string): string {
  const [high = 0, low = 0] = createHash("sha256").update(suffix).digest();
  return `10.${high}.${low}.0/24`;
}

async function makeUsers(make: Make, login: (name: string) => Promise<ApiReply["body"]>): Promise<readonly Asker[]> {
  const askers: Asker[] = [];
  const user = async (username: string, role: Role): Promise<{ id: string; access: string; refresh: string }> => {
    const { id } = await make("POST", "/users", { username, password: passwordOf(username), role });
    const { access_token: access, refresh_token: refresh } = await login(username);
    return { id, access, refresh };
  };
  for (const role of ["readonly", "editor", "admin"] as const) {
    const { access, refresh } = await user(`user-${role}`, role);
    askers.push({ name: `user ${role}`, role, headers: bearer(access) });
    askers.push({ name: `cookie ${role}`, role, headers: { cookie: `a=b; svc_session=${access}` } });
    askers.push({ name: `refresh token of ${role}`, role: "nobody", headers: bearer(refresh) });
    const [head = "", payload = "", signature = ""] = access.split(".");
    const otherSignature = `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
    askers.push({ name: `forged ${role}`, role: "nobody", headers: bearer(`${head}.${payload}.${otherSignature}`) });
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    askers.push({ name: `unsigned ${role}`, role: "nobody", headers: bearer(`${none}.${payload}.`) });
    // A header that is not understood is no leave to go on with the cookie.
    const both = { authorization: "Basic YTpi", cookie: `svc_session=${access}` };
    askers.push({ name: `basic beside cookie ${role}`, role: "nobody", headers: both });
  }
  const disabled = await user("disabled", "admin");
  await make("PUT", `/users/${disabled.id}`, { enabled: false });
  const deleted = await user("deleted", "admin");
  await make("DELETE", `/users/${deleted.id}`);
  const changed = await user("changed", "admin");
  await make("PUT", `/users/${changed.id}`, { password: "another long password" });
  const left = await user("left", "admin");
  await make("POST", "/auth/logout", { refresh_token: left.refresh }, left.access);
  const ended = { "disabled user": disabled, "deleted user": deleted, "password changed": changed, "signed out": left };
  for (const [name, { access }] of Object.entries(ended)) {
    askers.push({ name, role: "nobody", headers: bearer(access) });
  }
  const demoted = await user("demoted", "admin");
  await make("PUT", `/users/${demoted.id}`, { role: "readonly" });
  const { access_token } = await login("demoted");
  askers.push({ name: "user demoted to readonly", role: "readonly", headers: bearer(access_token) });
  return askers;
}

function passwordOf(username: string): string {
  return username === "admin" ? ADMIN_PASSWORD : `${username} has a long password`;
}

async function makeAccounts(make: Make, store: Store, { zones }: Furniture): Promise<readonly Asker[]> {
  const dead = (await make("POST", "/zones", { name: "dead.example." })).id;
  const account = (name: string, role: Role, more: object = {}): Promise<{ id: string; token: string }> =>
    make("POST", "/service-accounts", { name, role, ...more });
  const askers: Asker[] = [];
  const add = (name: string, role: Asker["role"], token: string, more: Partial<Asker> = {}) =>
    askers.push({ name, role, headers: bearer(token), ...more });
  for (const role of ["readonly", "editor", "admin"] as const) {
    add(`account ${role}`, role, (await account(`all ${role}`, role)).token);
    const confinements = { mine: [zones[0]], dead: [dead], none: [] } as const;
    for (const [which, zone_ids] of Object.entries(confinements)) {
      if (which !== "mine" && which !== "dead" && which !== "none") continue;
      const { token } = await account(`${which} ${role}`, role, { zone_ids });
      add(`account ${role} of zone ${which}`, role, token, { zones: which });
    }
  }
  await make("DELETE", `/zones/${dead}`);
  const revoked = await account("revoked", "admin");
  await make("POST", `/service-accounts/${revoked.id}/revoke`);
  add("revoked account", "nobody", revoked.token);
  const deleted = await account("deleted", "admin");
  await make("DELETE", `/service-accounts/${deleted.id}`);
  add("deleted account", "nobody", deleted.token);
  const rotated = await account("rotated", "admin");
  const { token } = await make("POST", `/service-accounts/${rotated.id}/rotate`, {});
  add("account rotated, old token", "nobody", rotated.token);
  add("account rotated, new token", "admin", token);
  const expires_at = new Date(Date.now() + MINUTE_MS).toISOString();
  add("expired account", "nobody", (await account("expires", "admin", { expires_at })).token);
  askers.push({ name: "account token as cookie", role: "nobody", headers: { cookie: `svc_session=${token}` } });
  const id = newId("service-account");
  const { token: foreign, secretHash } = newToken(id);
  const body = { id, name: "foreign", role: "admin", revoked: false, version: 1, secret_hash: secretHash } as const;
  await store.write((tx) => void tx.put("service-account", { ...body, issuing_node: "another-node" }));
  add("account of another node", "nobody", foreign);
  return askers;
}

const STRANGERS: readonly Asker[] = Object.entries({
  "no credentials": {},
  "empty cookie": { cookie: "svc_session=" },
  "nonsense token": bearer("nonsense"),
  "token without scheme": { authorization: "admin" },
  "empty authorization": { authorization: "" },
  "account token of nobody": bearer(`svcsat_${"a".repeat(20)}_${"b".repeat(43)}`),
}).map(([name, headers]) => ({ name, headers, role: "nobody" }));

/** Starts all of it; tokens are real, and the clock of sign-in runs ahead so far that what was to expire has expired. */
export async function startWorld(options: TestApiOptions = {}): Promise<World> {
  const faultsLogged: string[] = [];
  const log: Log = (level, message, fields) => {
    if (level === "error") faultsLogged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const thread = createImportThread();
  const clock = { aheadMs: 0 };
  const made: { signIn?: SignIn; routes: readonly Route[] } = { routes: [] };
  const signInOf = (context: CommandContext): SignIn => {
    const now = () => Date.now() + clock.aheadMs;
    const signingKey = new Uint8Array(32).fill(7);
    made.signIn ??= createSignIn({ context: { ...context, now }, signingKey, serviceAccountScope: "issuing-node" });
    return made.signIn;
  };
  const cluster = createFakeCluster();
  const routesOf = (context: CommandContext): readonly Route[] => {
    const signIn = signInOf(context);
    const importTools = { parse: thread.parse };
    const health = openHealthLab(context.store, { areScriptsEnabled: true });
    made.routes = apiRoutes({
      context,
      signIn,
      idp: createIdp(signIn, 1),
      importTools,
      blocklist: { read: thread.readBlocklist, inForce: async () => {} },
      areScriptsEnabled: true,
      health: health.view,
      explain: explainerOver({ store: context.store, health }),
      isOwnSocket: () => false,
      cache: fakeCache(),
      debug: fakeDebug(),
      cluster,
      listeners: () => TEST_LISTENERS,
    });
    return made.routes;
  };
  const authenticateWith = (context: CommandContext) => {
    const signIn = signInOf(context);
    return (headers: Parameters<typeof authenticateHeaders>[1]) => authenticateHeaders(signIn, headers);
  };
  const api = await startApi(routesOf, { log, authenticateWith, ...options });
  const dispose = async () => {
    await api[Symbol.asyncDispose]();
    made.signIn?.close();
    await thread[Symbol.asyncDispose]();
  };
  const { askers, furniture, make } = await peopled(api, clock).catch(async (error: unknown) => {
    await dispose();
    throw error;
  });
  let changes = 0;
  api.store.onChange((batch) => {
    changes += batch.changes.length + batch.zones.length;
  });
  return {
    api,
    routes: made.routes,
    askers,
    furniture,
    make,
    faultsLogged,
    digest: () => digestOf(api.store),
    changes: () => changes,
    ask: (method, path, { headers }, request = {}) =>
      api.ask(method, path, { ...request, as: null, headers: { ...headers, ...request.headers } }),
    [Symbol.asyncDispose]: dispose,
  };
}

/** Another node has made the same mapping, and neither knew of the other: the id of what lost. */
async function loseAnEdit({ nodeStore }: TestApi): Promise<string> {
  await using other = await temporaryStore({ nodeId: "other-node" });
  for (const [store, region_id] of [
    [nodeStore, "here"],
    [other.store, "there"],
  ] as const) {
    const body = { id: newId("subnet-mapping"), subnet: "192.0.2.0/24", region_id, source: "manual" };
    await store.write((tx) => void tx.put("subnet-mapping", body));
  }
  await nodeStore.applyRemote(other.store.rawItems({ limit: 10 }).items);
  return nodeStore.journalPage({ limit: 1 }).entries[0]?.id ?? assert.fail("nothing was lost");
}

/** Fills the store and signs everybody in; moves the clock to and fro for those whose time is to be over. */
async function peopled(
  api: TestApi,
  clock: { aheadMs: number },
): Promise<{ readonly askers: readonly Asker[]; readonly furniture: Furniture; readonly make: Make }> {
  await ensureAdmin(api.context, { initialPassword: ADMIN_PASSWORD });
  const login = async (username: string): Promise<ApiReply["body"]> => {
    const json = { username, password: passwordOf(username) };
    const { status, body, text } = await api.ask("POST", "/auth/login", { as: null, json });
    assert.equal(status, 200, text);
    return body;
  };
  clock.aheadMs = -25 * 60 * MINUTE_MS;
  const { access_token: old } = await login("admin");
  clock.aheadMs = 0;
  const make = maker(api, (await login("admin")).access_token);
  const furniture = { ...(await furnish(make)), conflict: await loseAnEdit(api) };
  const node = { id: STOPPED_NODE, region: "", address: "192.0.2.2:7946", version: "1" };
  await api.store.write((tx) => void tx.put("node", node));
  const askers: readonly Asker[] = [
    ...STRANGERS,
    { name: "expired token", role: "nobody", headers: bearer(old) } as const,
    ...(await makeUsers(make, login)),
    ...(await makeAccounts(make, api.store, furniture)),
  ];
  clock.aheadMs = 2 * MINUTE_MS;
  return { askers, furniture, make };
}

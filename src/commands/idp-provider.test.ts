import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { effectiveIdp } from "../model/idp.ts";
import { type Attempt, createProvider, type ProviderSettings } from "./idp-provider.ts";

/** What a provider answers at a path; a function may also never end the response. */
type Answer = unknown | ((request: IncomingMessage, response: ServerResponse) => void);

type FakeProvider = AsyncDisposable & {
  readonly issuer: string;
  readonly answers: Map<string, Answer>;
  readonly asked: string[];
  readonly settings: ProviderSettings;
};

const keys = await generateKeyPair("RS256");
const otherKeys = await generateKeyPair("RS256");
const ATTEMPT: Attempt = { state: "the-state", nonce: "the-nonce", verifier: "v".repeat(43) };

/** A provider over HTTP that answers as a test wants. */
async function startFake(): Promise<FakeProvider> {
  const answers = new Map<string, Answer>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const answer = answers.get(path);
    if (typeof answer === "function") return void answer(request, response);
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  answers.set("/.well-known/openid-configuration", {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    userinfo_endpoint: `${issuer}/me`,
    id_token_signing_alg_values_supported: ["RS256"],
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
  });
  answers.set("/keys", { keys: [{ ...(await exportJWK(keys.publicKey)), kid: "k", alg: "RS256", use: "sig" }] });
  return {
    issuer,
    answers,
    asked,
    settings: {
      ...effectiveIdp({ client_secret: "s" }),
      issuer,
      client_id: "signpost",
      redirect_uri: "https://dns.corp.test/api/v1/auth/idp/callback",
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers the token endpoint with an ID token that differs from a right one by `changes`. */
async function giveToken(fake: FakeProvider, changes: object = {}, key = keys.privateKey): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: fake.issuer,
    aud: "signpost",
    sub: "s1",
    nonce: ATTEMPT.nonce,
    iat: now,
    exp: now + 60,
    ...changes,
  };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "k" }).sign(key);
  fake.answers.set("/token", { access_token: "a", token_type: "Bearer", id_token: token });
}

function finish(fake: FakeProvider, query = "code=c&state=the-state") {
  return createProvider(Date.now, 2).finish(fake.settings, ATTEMPT, new URLSearchParams(query));
}

test("claims come from the ID token and from user info about the same subject", async () => {
  await using fake = await startFake();
  await giveToken(fake, { email: "a@corp.test" });
  fake.answers.set("/me", { sub: "s1", groups: ["g"], email: "of-another@corp.test" });
  const outcome = await finish(fake);
  assert.ok(outcome.kind === "claims");
  assert.deepEqual([outcome.claims.groups, outcome.claims.email, outcome.issuer], [["g"], "a@corp.test", fake.issuer]);
  fake.answers.set("/me", { sub: "s2", groups: ["g"] });
  assert.equal((await finish(fake)).kind, "failed");
});

test("an ID token that is forged, old, or meant for another is refused", async () => {
  await using fake = await startFake();
  fake.answers.set("/me", { sub: "s1" });
  const past = Math.floor(Date.now() / 1000) - 3600;
  const wrong: object[] = [
    { nonce: "another" },
    { nonce: undefined },
    { aud: "another" },
    { aud: ["signpost", "another"], azp: "another" },
    { iss: "https://evil.test" },
    { exp: past },
    { sub: undefined },
    { sub: 7 },
  ];
  for (const changes of wrong) {
    await giveToken(fake, changes);
    assert.equal((await finish(fake)).kind, "failed", JSON.stringify(changes));
  }
  await giveToken(fake, {}, otherKeys.privateKey);
  assert.equal((await finish(fake)).kind, "failed", "signed by another key");
  fake.answers.set("/token", { access_token: "a", token_type: "Bearer" });
  assert.equal((await finish(fake)).kind, "failed", "no ID token");
  await giveToken(fake);
  assert.equal((await finish(fake)).kind, "claims");
});

test("a refusal is told from a failure, in a word and not in the provider's text", async () => {
  await using fake = await startFake();
  const refused = await finish(fake, "error=access_denied&error_description=%3Cscript%3E&state=the-state");
  assert.deepEqual(refused, { kind: "refused", reason: "access_denied" });
  const odd = await finish(fake, "error=%3Cscript%3E&state=the-state");
  assert.deepEqual(odd, { kind: "refused", reason: "an unknown error" });
  const answerWith =
    (error: string): Answer =>
    (_request: IncomingMessage, response: ServerResponse) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error }));
    };
  fake.answers.set("/token", answerWith("invalid_grant"));
  assert.deepEqual(await finish(fake), { kind: "refused", reason: "invalid_grant" });
  fake.answers.set("/token", answerWith("invalid_client"));
  assert.deepEqual(await finish(fake), { kind: "failed", reason: "the provider answered invalid_client" });
});

test("a provider that is slow, endless, elsewhere or another one cannot hold or mislead a sign-in", async () => {
  await using fake = await startFake();
  const discovery = "/.well-known/openid-configuration";
  const right = fake.answers.get(discovery) as Record<string, unknown>;
  const broken: [string, Answer][] = [
    ["silent", () => undefined],
    ["no end", (_request: IncomingMessage, response: ServerResponse) => response.write('{"issuer":')],
    ["not JSON", (_request: IncomingMessage, response: ServerResponse) => response.end("<html>")],
    ["another issuer", { ...right, issuer: "https://evil.test" }],
    [
      "elsewhere",
      (_request: IncomingMessage, response: ServerResponse) => response.writeHead(302, { location: "/x" }).end(),
    ],
    ["too large", { ...right, padding: "x".repeat(2 ** 20) }],
    ["an insecure page", { ...right, authorization_endpoint: "http://evil.test/authorize" }],
  ];
  for (const [name, answer] of broken) {
    fake.answers.set(discovery, answer);
    // One that is waited for without end would end this test.
    await assert.rejects(createProvider(Date.now, 1).begin(fake.settings), name);
  }
  const forged = { "http://evil.test/token": "not https", "https://169.254.169.254/token": "link-local" };
  for (const [token_endpoint, reason] of Object.entries(forged)) {
    fake.answers.set(discovery, { ...right, token_endpoint });
    const outcome = await finish(fake);
    assert.equal(outcome.kind, "failed");
    assert.equal(JSON.stringify(outcome).includes(reason), true);
  }
  const linkLocal = { ...fake.settings, issuer: "https://169.254.169.254" };
  await assert.rejects(createProvider(Date.now, 1).begin(linkLocal), /link-local/);
});

test("metadata are asked for once an hour, at once again after a failure, and anew for other settings", async () => {
  await using fake = await startFake();
  let nowMs = 1_000_000;
  const provider = createProvider(() => nowMs, 2);
  const discoveries = () => fake.asked.filter((path) => path.startsWith("/.well-known/")).length;
  const right = fake.answers.get("/.well-known/openid-configuration");
  fake.answers.delete("/.well-known/openid-configuration");
  await assert.rejects(provider.begin(fake.settings));
  fake.answers.set("/.well-known/openid-configuration", right);
  await Promise.all([provider.begin(fake.settings), provider.begin(fake.settings)]);
  const [one, other] = await Promise.all([provider.begin(fake.settings), provider.begin(fake.settings)]);
  assert.equal(discoveries(), 2);
  assert.notEqual(one?.attempt.state, other?.attempt.state);
  nowMs += 3_600_001;
  await provider.begin(fake.settings);
  await provider.begin({ ...fake.settings, client_id: "another" });
  assert.equal(discoveries(), 4);
});

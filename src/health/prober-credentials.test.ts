import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createRawServer } from "node:net";
import test, { type TestContext } from "node:test";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { httpSpec, listenFor, proberFor, STRICT } from "../../tests/support/probe-lab.ts";
import type { HttpConfig } from "../model/objects.ts";
import type { ProbePolicy, ProbeSpec } from "./probe.ts";
import { planOf, policyFault } from "./probe-plan.ts";

const LAX: ProbePolicy = { allowInsecureAuthenticatedProbes: true, managedIdentityHosts: ["app.example"] };
const SECRET = "hush hush/&=";

/** A backend that takes the tokens in `valid`, and remembers what it was shown. */
async function backend(t: TestContext, valid: Set<string>) {
  const shown: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    shown.push(request.headers.authorization);
    response.writeHead(valid.has(request.headers.authorization ?? "") ? 200 : 401).end();
  });
  return { shown, port: await listenFor(t, server) };
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A service that hands out tokens; gives its origin and the bodies that it was sent. */
async function tokenService(t: TestContext, answer: Answer) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += String(chunk);
    });
    request.on("end", () => {
      bodies.push(body);
      answer(request, response, body);
    });
  });
  return { bodies, origin: `http://127.0.0.1:${await listenFor(t, server)}` };
}

function oauth2Spec(port: number, origin: string, options: Partial<ProbeSpec> = {}): ProbeSpec {
  const oauth2 = { token_url: `${origin}/token`, client_id: "id:1", client_secret: SECRET, scope: "health read" };
  return httpSpec(port, { http: { oauth2 }, ...options });
}

const give = (response: ServerResponse, token: string, expires_in = 3_600) =>
  response.end(JSON.stringify({ access_token: token, token_type: "bearer", expires_in }));

test("oauth2: a token is had with HTTP Basic, once for all probes, until it expires", async (t) => {
  const { shown, port } = await backend(t, new Set(["Bearer t1", "Bearer t2"]));
  const basics: (string | undefined)[] = [];
  const { bodies, origin } = await tokenService(t, (request, response) => {
    basics.push(request.headers.authorization);
    give(response, `t${basics.length}`);
  });
  let nowMs = Date.now();
  const prober = proberFor(t, { policy: () => LAX, now: () => nowMs });
  const probes = Array.from({ length: 100 }, () => prober.run(oauth2Spec(port, origin)));
  assert.deepEqual(new Set((await Promise.all(probes)).map(({ error }) => error)), new Set([undefined]));
  assert.deepEqual(bodies, ["grant_type=client_credentials&scope=health+read"]);
  assert.deepEqual(basics, [`Basic ${Buffer.from("id%3A1:hush+hush%2F%26%3D").toString("base64")}`]);
  nowMs += 3_600_000;
  assert.equal((await prober.run(oauth2Spec(port, origin))).error, undefined);
  assert.equal(bodies.length, 2);
  assert.deepEqual(new Set(shown), new Set(["Bearer t1", "Bearer t2"]));
});

test("oauth2: where Basic is refused, the secret goes in the body", async (t) => {
  const { port } = await backend(t, new Set(["Bearer t"]));
  const { bodies, origin } = await tokenService(t, (request, response, body) => {
    const fields = new URLSearchParams(body);
    if (request.headers.authorization === undefined && fields.get("client_secret") === SECRET) give(response, "t");
    else response.writeHead(401).end('{"error":"invalid_client"}');
  });
  assert.equal((await proberFor(t, { policy: () => LAX }).run(oauth2Spec(port, origin))).error, undefined);
  assert.equal(bodies.length, 2);
});

const failures: readonly (readonly [string, Answer, RegExp])[] = [
  [
    "refuses",
    (_q, r) => r.writeHead(401).end(`{"error":"invalid_client","secret":"${SECRET}"}`),
    /401: invalid_client$/,
  ],
  ["is broken", (_q, r) => r.writeHead(503).end(SECRET), /answered 503$/],
  ["sends elsewhere", (_q, r) => r.writeHead(307, { location: "http://127.0.0.1:1/" }).end(), /answered 307$/],
  ["gives no token", (_q, r) => r.end(`{"token":"${SECRET}"}`), /no usable token/],
  ["gives two lines", (_q, r) => r.end('{"access_token":"a\\r\\nHost: b"}'), /no usable token/],
  ["never ends", (_q, r) => r.end("x".repeat(100_000)), /above 65536 bytes/],
  ["never answers", () => {}, /no token in time/],
];
for (const [what, answer, detail] of failures) {
  test(`oauth2: a token service that ${what} is a failure of credentials, and is not stormed`, async (t) => {
    const { shown, port } = await backend(t, new Set());
    const { bodies, origin } = await tokenService(t, answer);
    const prober = proberFor(t, { policy: () => LAX, now: () => 1_000_000 });
    const spec = oauth2Spec(port, origin, what === "never answers" ? { timeoutMs: 500 } : {});
    for (let round = 0; round < 3; round++) {
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => prober.run(spec)));
      for (const { error, detail: text } of outcomes) {
        assert.equal(error, "credentials");
        assert.match(text ?? "", detail);
        assert.doesNotMatch(text ?? "", /hush/);
      }
      if (what === "never answers") break;
    }
    assert.ok(bodies.length <= 2, `asked ${bodies.length} times`);
    assert.deepEqual(shown, []);
  });
}

test("oauth2: a token URL that is neither https nor of this machine is not asked", async (t) => {
  const { port } = await backend(t, new Set());
  for (const origin of ["http://192.0.2.1", "https://169.254.169.254", "https://u:p@127.0.0.1", "ftp://x", "x"]) {
    const outcome = await proberFor(t, { policy: () => LAX }).run(oauth2Spec(port, origin));
    assert.equal(outcome.error, "credentials");
    assert.match(outcome.detail ?? "", /token_url/);
  }
});

test("a token that the backend refuses is fetched anew, once an interval", async (t) => {
  const { shown, port } = await backend(t, new Set(["Bearer t3"]));
  let given = 0;
  const { origin } = await tokenService(t, (_request, response) => give(response, `t${++given}`));
  let nowMs = Date.now();
  const prober = proberFor(t, { policy: () => LAX, now: () => nowMs });
  const spec = oauth2Spec(port, origin);
  for (let probe = 0; probe < 20; probe++) {
    assert.equal((await prober.run(spec)).error, "status");
  }
  assert.equal(given, 1);
  nowMs += spec.intervalMs;
  await prober.run(spec);
  await prober.run(spec);
  assert.equal(given, 2);
  nowMs += spec.intervalMs;
  await prober.run(spec);
  assert.equal((await prober.run(spec)).error, undefined);
  assert.deepEqual(shown.slice(-2), ["Bearer t2", "Bearer t3"]);
});

test("managed identity: the token goes over TLS to the listed name, whatever the address", async (t) => {
  const authority = makeCertificate({ commonName: "authority", isAuthority: true });
  const certificate = makeCertificate({ commonName: "app", names: ["app.example"], issuer: authority });
  const shown: (string | undefined)[] = [];
  const server = createTlsServer(certificate, (request, response) => {
    shown.push(request.headers.authorization);
    response.end();
  });
  const port = await listenFor(t, server);
  const { origin } = await tokenService(t, (request, response) => {
    const url = new URL(request.url ?? "", "http://metadata");
    give(response, `for-${url.searchParams.get("resource")}-${url.searchParams.get("client_id")}`);
  });
  let policy: ProbePolicy = { ...STRICT, managedIdentityHosts: ["App.Example"] };
  const authorities = () => [authority.cert];
  const prober = proberFor(t, { metadataUrl: origin, authorities, policy: () => policy });
  const http: HttpConfig = { host: "app.example", managed_identity: { resource: "res", client_id: "me" } };
  const spec = httpSpec(port, { protocol: "https", http });
  assert.equal((await prober.run(spec)).error, undefined);
  assert.deepEqual(shown, ["Bearer for-res-me"]);
  const elsewhere = { ...spec, http: { ...http, host: "other.example" } };
  assert.equal((await prober.run(elsewhere)).error, "policy");
  policy = { ...STRICT, managedIdentityHosts: ["other.example"] };
  // Listed, but it cannot prove the name: no token leaves before TLS has.
  assert.equal((await prober.run(elsewhere)).error, "tls_name");
  assert.equal((await prober.run(spec)).error, "policy");
  assert.equal(shown.length, 1);
});

test("nothing is sent, and nobody asked for a token, where the policy forbids the probe", async (t) => {
  let connections = 0;
  const port = await listenFor(
    t,
    createRawServer(() => connections++),
  );
  const { bodies, origin } = await tokenService(t, (_request, response) => give(response, "t"));
  const prober = proberFor(t, { metadataUrl: origin });
  const forbidden: readonly HttpConfig[] = [
    { headers: { "x-key": SECRET } },
    { managed_identity: { resource: "r" } },
    { oauth2: { token_url: `${origin}/token`, client_id: "i", client_secret: SECRET } },
    { mtls: { cert_pem: "c", key_pem: "k" } },
  ];
  for (const http of forbidden) {
    const outcome = await prober.run(httpSpec(port, { http }));
    assert.equal(outcome.error, "policy");
    assert.equal(outcome.latencyUs, 0);
  }
  assert.equal(connections, 0);
  assert.deepEqual(bodies, []);
});

const identity: HttpConfig = { managed_identity: { resource: "r" } };
type Rule = readonly [what: string, spec: Partial<ProbeSpec>, policy: Partial<ProbePolicy>, isAllowed: boolean];
const listed = { managedIdentityHosts: ["app.example", "*.wild.example"] };
const lax = { allowInsecureAuthenticatedProbes: true };
const rules: readonly Rule[] = [
  ["http without credentials", {}, {}, true],
  ["http with a path, a host and statuses", { http: { path: "/", host: "x", expected_status: [200] } }, {}, true],
  ["http with no headers in headers", { http: { headers: {} } }, {}, true],
  ["http with headers", { http: { headers: { a: "b" } } }, {}, false],
  ["http with headers, allowed", { http: { headers: { a: "b" } } }, lax, true],
  ["https with headers", { protocol: "https", http: { headers: { a: "b" } } }, {}, true],
  ["identity, not listed", { protocol: "https", host: "app.example.", http: identity }, {}, false],
  ["identity, listed", { protocol: "https", host: "App.Example.", http: identity }, listed, true],
  ["identity, below a wildcard", { protocol: "https", host: "a.b.wild.example.", http: identity }, listed, true],
  ["identity, the wildcard's own name", { protocol: "https", host: "wild.example.", http: identity }, listed, false],
  ["identity, a name that ends alike", { protocol: "https", host: "evilwild.example.", http: identity }, listed, false],
  ["identity, a name below a listed one", { protocol: "https", host: "x.app.example.", http: identity }, listed, false],
  ["identity, an address", { protocol: "https", http: identity }, listed, false],
  [
    "identity, an address that is listed",
    { protocol: "https", host: "2001:DB8::1", http: identity },
    { managedIdentityHosts: ["2001:db8:0::1"] },
    true,
  ],
  [
    "identity, an address as the listed name",
    { protocol: "https", http: { ...identity, host: "app.example" } },
    listed,
    true,
  ],
  [
    "identity, a listed host as another name",
    { protocol: "https", host: "app.example.", http: { ...identity, host: "x.example" } },
    listed,
    false,
  ],
  [
    "identity, an authority of one's own",
    { protocol: "https", host: "app.example.", http: { ...identity, ca_pem: "x" } },
    listed,
    false,
  ],
  ["identity over http, listed", { host: "app.example.", http: identity }, listed, false],
  ["identity over http, allowed and not listed", { host: "app.example.", http: identity }, lax, false],
  ["identity over http, allowed and listed", { host: "app.example.", http: identity }, { ...lax, ...listed }, true],
  [
    "identity over http, an address as the listed name",
    { http: { ...identity, host: "app.example" } },
    { ...lax, ...listed },
    false,
  ],
];
for (const [what, options, policy, isAllowed] of rules) {
  test(`policy: ${what} is ${isAllowed ? "allowed" : "refused"}`, () => {
    const spec = httpSpec(80, options);
    const { http } = planOf(spec);
    assert.ok(http !== undefined);
    assert.equal(policyFault(spec, http, { ...STRICT, ...policy }) === undefined, isAllowed);
  });
}

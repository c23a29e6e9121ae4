import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from "node:tls";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { httpSpec, listenFor, proberFor } from "../../tests/support/probe-lab.ts";
import type { HttpConfig } from "../model/objects.ts";
import type { ProbeError, ProbeSpec } from "./probe.ts";

const DAY_MS = 86_400_000;
const nowMs = Date.now();
const authority = makeCertificate({ commonName: "authority", isAuthority: true });
const other = makeCertificate({ commonName: "another", isAuthority: true });
const leaf = { commonName: "leaf", names: ["app.example", "127.0.0.1"], issuer: authority };
const good = makeCertificate(leaf);
const onlyName = makeCertificate({ ...leaf, names: ["app.example"] });
const wildcard = makeCertificate({ ...leaf, names: ["*.wild.example"] });
const expired = makeCertificate({ ...leaf, fromMs: nowMs - 9 * DAY_MS, toMs: nowMs - DAY_MS });
const future = makeCertificate({ ...leaf, fromMs: nowMs + DAY_MS, toMs: nowMs + 9 * DAY_MS });
const foreign = makeCertificate({ ...leaf, issuer: other });
const selfSigned = makeCertificate({ commonName: "self", names: ["app.example", "127.0.0.1"] });
const client = makeCertificate({ commonName: "client", issuer: authority });
const foreignClient = makeCertificate({ commonName: "client", issuer: other });

const ca_pem = authority.cert;
const named: HttpConfig = { ca_pem, host: "app.example" };
const mtlsOf = ({ cert, key }: { readonly cert: string; readonly key: string }) => ({
  ...named,
  mtls: { cert_pem: cert, key_pem: key },
});

type Case = {
  readonly server: TlsOptions;
  readonly http?: HttpConfig;
  readonly error?: ProbeError;
  readonly detail?: RegExp;
};
const wantsClient: TlsOptions = { ...good, requestCert: true, rejectUnauthorized: true, ca: [authority.cert] };

const cases: Readonly<Record<string, Case>> = {
  "the private authority's certificate, by address": { server: good, http: { ca_pem } },
  "by name": { server: good, http: named },
  "a wildcard's name": { server: wildcard, http: { ca_pem, host: "a.wild.example" } },
  "a certificate that is trusted itself": { server: selfSigned, http: { ca_pem: selfSigned.cert } },
  "several authorities in one text": { server: good, http: { ca_pem: other.cert + authority.cert } },
  "no such address in the certificate": { server: onlyName, http: { ca_pem }, error: "tls_name" },
  "no such name in the certificate": { server: good, http: { ca_pem, host: "www.example" }, error: "tls_name" },
  "another address as host": { server: good, http: { ca_pem, host: "127.0.0.2" }, error: "tls_name" },
  "a wildcard too far": { server: wildcard, http: { ca_pem, host: "a.b.wild.example" }, error: "tls_name" },
  expired: { server: expired, http: named, error: "tls_expired" },
  "not yet valid": { server: future, http: named, error: "tls_expired" },
  "self-signed": { server: selfSigned, http: named, error: "tls_untrusted" },
  "another authority's": { server: foreign, http: named, error: "tls_untrusted" },
  "no private authority given": { server: good, http: { host: "app.example" }, error: "tls_untrusted" },
  "only TLS 1.1": {
    server: { ...good, maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" },
    http: named,
    error: "tls",
  },
  "TLS 1.2": { server: { ...good, maxVersion: "TLSv1.2" }, http: named },
  "a client certificate": { server: wantsClient, http: mtlsOf(client) },
  "a client certificate, in TLS 1.2": { server: { ...wantsClient, maxVersion: "TLSv1.2" }, http: mtlsOf(client) },
  "no client certificate, where one is wanted": {
    server: { ...wantsClient, maxVersion: "TLSv1.2" },
    http: named,
    // All that is said there is that the handshake failed (RFC 5246 section 7.4.6).
    error: "tls",
  },
  "a client certificate whose key is another": {
    server: wantsClient,
    http: { ...named, mtls: { cert_pem: client.cert, key_pem: good.key } },
    error: "credentials",
    detail: /client certificate cannot be used/,
  },
  "a client certificate that is none": {
    server: wantsClient,
    http: { ...named, mtls: { cert_pem: "-----BEGIN CERTIFICATE-----\nhush\n", key_pem: "hush" } },
    error: "credentials",
  },
};

for (const [what, { server: options, http, error, detail }] of Object.entries(cases)) {
  test(`https with ${what}: ${error ?? "success"}`, async (t) => {
    const server = createTlsServer(options, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
    });
    server.on("tlsClientError", () => {});
    const port = await listenFor(t, server);
    const outcome = await proberFor(t).run(httpsSpec(port, http));
    assert.equal(outcome.error, error, outcome.detail ?? "");
    assert.match(outcome.detail ?? "", detail ?? /^[ -~]{0,200}$/);
    assert.doesNotMatch(outcome.detail ?? "", /hush|-----/);
  });
}

const refusedClients = { "that the server does not trust": mtlsOf(foreignClient), "that is missing": named };
for (const [what, http] of Object.entries(refusedClients)) {
  test(`a client certificate ${what} ends as credentials or as a reset`, async (t) => {
    const server = createTlsServer(wantsClient, () => {});
    server.on("tlsClientError", () => {});
    const port = await listenFor(t, server);
    const { error } = await proberFor(t).run(httpsSpec(port, http));
    // In TLS 1.3 the server's word comes after the handshake, and may be lost in the end of the connection.
    assert.ok(error === "credentials" || error === "reset", error ?? "success");
  });
}

test("the server sees the client's certificate, the name and HTTP/1.1; a bare address is not sent as a name", async (t) => {
  const seen: object[] = [];
  const server = createTlsServer({ ...wantsClient, ALPNProtocols: ["h2", "http/1.1"] }, (socket: TLSSocket) => {
    const { subject } = socket.getPeerCertificate();
    const { servername, alpnProtocol } = Object.assign(socket, { servername: Reflect.get(socket, "servername") });
    seen.push({ who: subject.CN, servername, alpnProtocol, isReused: socket.isSessionReused() });
    socket.end("HTTP/1.1 200 OK\r\n\r\n");
  });
  const port = await listenFor(t, server);
  const prober = proberFor(t);
  const byName = httpsSpec(port, mtlsOf(client));
  const byAddress = httpsSpec(port, { ca_pem, mtls: { cert_pem: client.cert, key_pem: client.key } });
  for (const spec of [byName, byName, byAddress]) assert.equal((await prober.run(spec)).error, undefined);
  const common = { who: "client", alpnProtocol: "http/1.1", isReused: false };
  assert.deepEqual(seen, [
    { ...common, servername: "app.example" },
    { ...common, servername: "app.example" },
    { ...common, servername: false },
  ]);
});

test("a handshake that never ends is a read_timeout, as there was a connection", async (t) => {
  const port = await listenFor(t, createServer());
  const outcome = await proberFor(t).run({ ...httpsSpec(port, named), timeoutMs: 300 });
  assert.equal(outcome.error, "read_timeout");
  assert.match(outcome.detail ?? "", /TLS/);
});

test("TLS to a server that does not speak it: tls; a plain request to one that speaks nothing else: no success", async (t) => {
  const prober = proberFor(t);
  const plain = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  assert.equal((await prober.run(httpsSpec(await listenFor(t, plain), named))).error, "tls");
  const encrypted = createTlsServer(good);
  encrypted.on("tlsClientError", () => {});
  const { error } = await prober.run(httpSpec(await listenFor(t, encrypted)));
  assert.ok(error === "protocol" || error === "reset", error ?? "success");
});

test("a connection that ends within the handshake: reset", async (t) => {
  const server = createServer((socket) => {
    socket.once("data", () => socket.end());
  });
  assert.equal((await proberFor(t).run(httpsSpec(await listenFor(t, server), named))).error, "reset");
});

test("whom the platform trusts, a probe trusts without being told", async (t) => {
  const server = createTlsServer(good, (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
  const port = await listenFor(t, server);
  const prober = proberFor(t, { authorities: () => [authority.cert] });
  assert.equal((await prober.run(httpsSpec(port, { host: "app.example" }))).error, undefined);
  // One's own authority comes beside those of the platform.
  assert.equal((await prober.run(httpsSpec(port, { host: "app.example", ca_pem: other.cert }))).error, undefined);
});

function httpsSpec(port: number, http: HttpConfig | undefined): ProbeSpec {
  return httpSpec(port, { protocol: "https", ...(http === undefined ? {} : { http }) });
}

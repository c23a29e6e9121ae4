import assert from "node:assert/strict";
import { test } from "node:test";
import { completeTemplate, HealthCheckTemplateShape, templateFaults } from "./health-template.ts";
import { type HealthCheckTemplate, type HttpConfig, RECORD_TYPES, type RecordType } from "./objects.ts";
import { checkShape } from "./shape.ts";

const CERT = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const KEY = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";

function faults(template: HealthCheckTemplate, type: RecordType = "A"): readonly string[] {
  return templateFaults(template, type).map(({ pointer }) => pointer.replace("/health_check_template", ""));
}

function http(http_config: HttpConfig, protocol: "http" | "https" = "https"): readonly string[] {
  return faults({ protocol, http_config }).map((pointer) => pointer.replace("/http_config", ""));
}

test("templates are for addresses, aliases and services", () => {
  const taken = RECORD_TYPES.filter((type) => faults({ protocol: "http" }, type).length === 0);
  assert.deepEqual(taken, ["A", "AAAA", "CNAME", "SRV", "ALIAS"]);
});

test("what is left out has its default", () => {
  assert.deepEqual(completeTemplate({ protocol: "http" }, "A"), {
    protocol: "http",
    port: 80,
    path: "/",
    interval_seconds: 15,
    timeout_seconds: 5,
  });
  assert.equal(completeTemplate({ protocol: "https", interval_seconds: 3 }, "A").timeout_seconds, 3);
  assert.equal(completeTemplate({ protocol: "https", http_config: { path: "/x" } }, "A").path, "/x");
  assert.equal(completeTemplate({ protocol: "https" }, "SRV").port, undefined);
  assert.deepEqual(completeTemplate({ protocol: "tcp", port: 22 }, "A"), {
    protocol: "tcp",
    port: 22,
    interval_seconds: 15,
    timeout_seconds: 5,
  });
});

test("a timeout does not exceed its interval, the default one neither", () => {
  assert.deepEqual(faults({ protocol: "http", interval_seconds: 5, timeout_seconds: 5 }), []);
  assert.deepEqual(faults({ protocol: "http", interval_seconds: 5, timeout_seconds: 6 }), ["/timeout_seconds"]);
  assert.deepEqual(faults({ protocol: "http", timeout_seconds: 16 }), ["/timeout_seconds"]);
});

test("tcp needs a port, which SRV has in its values, and knows nothing of HTTP", () => {
  assert.deepEqual(faults({ protocol: "tcp" }), ["/port"]);
  assert.deepEqual(faults({ protocol: "tcp" }, "SRV"), []);
  assert.deepEqual(faults({ protocol: "tcp", port: 1, path: "/", http_config: {} }), ["/path", "/http_config"]);
});

test("one path", () => {
  assert.deepEqual(faults({ protocol: "http", path: "/a", http_config: { path: "/b" } }), ["/http_config/path"]);
});

test("the shape holds what a probe could be hurt with", () => {
  const shape = (template: unknown) => checkShape(HealthCheckTemplateShape, template).map(({ pointer }) => pointer);
  assert.deepEqual(shape({ protocol: "udp" }), ["/protocol"]);
  assert.deepEqual(shape({ protocol: "http", failure_threshold: 3 }), ["/failure_threshold"]);
  assert.deepEqual(shape({ protocol: "http", path: "x" }), ["/path"]);
  assert.deepEqual(shape({ protocol: "http", path: "/a b" }), ["/path"]);
  assert.deepEqual(shape({ protocol: "http", path: "/\r\nX: y" }), ["/path"]);
  assert.deepEqual(shape({ protocol: "http", port: 0 }), ["/port"]);
  assert.deepEqual(shape({ protocol: "http", http_config: { expected_status: [99] } }), [
    "/http_config/expected_status/0",
  ]);
  assert.deepEqual(shape({ protocol: "http", http_config: { oauth2: { token_url: "https://a/" } } }), [
    "/http_config/oauth2/client_id",
    "/http_config/oauth2/client_secret",
  ]);
});

test("headers are headers, and break no message", () => {
  assert.deepEqual(http({ headers: { "X-Key": "a b\tc", Authorization: "Bearer x" } }), []);
  assert.deepEqual(http({ headers: { "X Y": "a" } }), ["/headers/X Y"]);
  assert.deepEqual(http({ headers: { "": "a" } }), ["/headers/"]);
  assert.deepEqual(http({ headers: { "X-Key": "a\r\nHost: evil" } }), ["/headers/X-Key"]);
  assert.deepEqual(http({ headers: { "X-Key": "é" } }), ["/headers/X-Key"]);
  assert.deepEqual(http({ headers: { Host: "a" } }), ["/headers/Host"]);
  assert.deepEqual(http({ headers: { "Transfer-Encoding": "chunked" } }), ["/headers/Transfer-Encoding"]);
  assert.deepEqual(http({ headers: { "X-Key": "a", "x-key": "b" } }), ["/headers/x-key"]);
  assert.deepEqual(http({ headers: { Authorization: "a" }, managed_identity: { resource: "r" } }), [
    "/headers/Authorization",
  ]);
});

test("one way to authenticate, to a place that keeps it secret", () => {
  const oauth2 = (token_url: string) => ({ oauth2: { token_url, client_id: "a", client_secret: "b" } });
  for (const url of ["https://login.test/token", "http://127.0.0.1:99/t", "http://[::1]/t", "http://localhost/"]) {
    assert.deepEqual(http(oauth2(url)), [], url);
  }
  for (const url of [
    "https://169.254.169.254/token",
    "https://[fe80::1]/token",
    "http://login.test/",
    "ftp://a/",
    "https://u:p@a/",
    "https://a/#x",
    "https://a /",
    "x",
  ]) {
    assert.deepEqual(http(oauth2(url)), ["/oauth2/token_url"], url);
  }
  assert.deepEqual(http({ ...oauth2("https://a/"), managed_identity: { resource: "r" } }), ["/managed_identity"]);
});

test("certificates are PEM, and for TLS", () => {
  assert.deepEqual(http({ mtls: { cert_pem: CERT, key_pem: KEY }, ca_pem: CERT }), []);
  assert.deepEqual(http({ mtls: { cert_pem: CERT, key_pem: KEY } }, "http"), ["/mtls"]);
  assert.deepEqual(http({ mtls: { cert_pem: KEY, key_pem: CERT } }), ["/mtls/cert_pem", "/mtls/key_pem"]);
  assert.deepEqual(http({ ca_pem: "nothing" }), ["/ca_pem"]);
});

test("the host of a probe is a name or an address", () => {
  for (const host of ["a.example", "a.example.", "192.0.2.1", "2001:db8::1"])
    assert.deepEqual(http({ host }), [], host);
  for (const host of ["a b", "a\r\nb", "a/b", "a:80"]) assert.deepEqual(http({ host }), ["/host"], host);
});

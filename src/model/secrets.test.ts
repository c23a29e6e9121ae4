import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordBody } from "./objects.ts";
import { kindOfResource, MASK, mapSecrets, maskByName, maskSecrets, restoreSecrets } from "./secrets.ts";

const RECORD: RecordBody = {
  id: "rec_a",
  zone: "corp.test.",
  name: "www",
  type: "A",
  ttl: 0,
  values: [{ value: "192.0.2.1" }],
  health_check_template: {
    protocol: "https",
    http_config: {
      path: "/healthz",
      headers: { Authorization: "Bearer abc", "X/Y~Z": "two" },
      oauth2: { token_url: "https://login.test/", client_id: "id", client_secret: "hush" },
      mtls: { cert_pem: "public", key_pem: "private" },
    },
  },
  protected: false,
  auto_populate: false,
};

test("every secret of a record is masked, and nothing else is", () => {
  const masked = maskSecrets("record", RECORD);
  const http = masked.health_check_template?.http_config;
  assert.deepEqual(http?.headers, { Authorization: MASK, "X/Y~Z": MASK });
  assert.deepEqual(http?.oauth2, { token_url: "https://login.test/", client_id: "id", client_secret: MASK });
  assert.deepEqual(http?.mtls, { cert_pem: "public", key_pem: MASK });
  assert.equal(http?.path, "/healthz");
  assert.equal(RECORD.health_check_template?.http_config?.oauth2?.client_secret, "hush");
  assert.doesNotMatch(JSON.stringify(masked), /hush|abc|two|private/);
});

test("pointers to secrets follow RFC 6901", () => {
  const pointers: string[] = [];
  mapSecrets("record", RECORD, (secret, pointer) => {
    pointers.push(pointer);
    return secret;
  });
  const http = "/health_check_template/http_config";
  assert.deepEqual(pointers, [
    `${http}/headers/Authorization`,
    `${http}/headers/X~1Y~0Z`,
    `${http}/oauth2/client_secret`,
    `${http}/mtls/key_pem`,
  ]);
});

test("*** keeps what is stored", () => {
  assert.deepEqual(restoreSecrets("record", maskSecrets("record", RECORD), RECORD), {
    body: RECORD,
    missing: [],
    moved: [],
  });
});

test("*** for nothing that is stored is named and left out, with what needs it", () => {
  const { body, missing } = restoreSecrets("record", maskSecrets("record", RECORD), undefined);
  assert.equal(missing.length, 4);
  assert.deepEqual(body.health_check_template, {
    protocol: "https",
    http_config: { path: "/healthz", headers: {} },
  });
});

test("a header keeps its secret when its name is spelled in another case", () => {
  const given = { health_check_template: { protocol: "https", http_config: { headers: { authorization: MASK } } } };
  const { body } = restoreSecrets("record", given, RECORD);
  assert.deepEqual(body.health_check_template.http_config.headers, { authorization: "Bearer abc" });
});

test("a secret that is sent in the clear replaces the stored one", () => {
  const given = { health_check_template: { http_config: { mtls: { cert_pem: "new", key_pem: "new" } } } };
  assert.deepEqual(restoreSecrets("record", given, RECORD), { body: given, missing: [], moved: [] });
});

test("*** is no secret that would be sent elsewhere; another address of the record changes nothing", () => {
  const masked = maskSecrets("record", RECORD);
  const { http_config, ...template } = masked.health_check_template ?? {};
  const movedBy = (given: object, http: object = {}) => {
    const health_check_template = { ...template, ...given, http_config: { ...http_config, ...http } };
    const { body, missing, moved } = restoreSecrets("record", { ...masked, health_check_template }, RECORD);
    assert.deepEqual(missing, []);
    if (moved.length === 4) assert.doesNotMatch(JSON.stringify(body), /hush|abc|two|private/);
    return moved.map((pointer) => pointer.split("/")[3]);
  };
  const all = ["headers", "headers", "oauth2", "mtls"];
  assert.deepEqual(movedBy({}, { host: "evil.test" }), all);
  assert.deepEqual(movedBy({ protocol: "http" }), all);
  assert.deepEqual(movedBy({ protocol: "tcp" }), all);
  assert.deepEqual(movedBy({}, { ca_pem: "another authority" }), all);
  const oauth2 = { client_id: "id", client_secret: MASK };
  assert.deepEqual(movedBy({}, { oauth2: { ...oauth2, token_url: "https://evil.test/" } }), ["oauth2"]);
  assert.deepEqual(movedBy({}, { oauth2: { ...oauth2, token_url: "https://LOGIN.test:443" } }), []);
  assert.deepEqual(movedBy({ port: 8443, interval_seconds: 5 }, { path: "/other", expected_status: [204] }), []);
  const values = [{ value: "198.51.100.7" }];
  assert.deepEqual(restoreSecrets("record", { ...masked, values }, RECORD).moved, []);
});

test("headers of the metrics export stay with their endpoint", () => {
  const stored = { settings: { endpoint: "https://a.test/v1", headers: { "X-Key": "1", "x-key": "2" } } };
  const moved = (endpoint: unknown) =>
    restoreSecrets("config", { settings: { endpoint, headers: { "X-Key": MASK } } }, stored).moved;
  assert.deepEqual(moved("https://b.test/v1"), ["/settings/headers/X-Key"]);
  assert.deepEqual(moved("http://a.test/v1"), ["/settings/headers/X-Key"]);
  assert.deepEqual([moved("https://A.test/v1"), moved(null)], [[], []]);
  assert.deepEqual(restoreSecrets("config", maskSecrets("config", stored), stored).body, stored);
});

test("members called like parts of a prototype are members like any other", () => {
  const given = JSON.parse('{"settings":{"headers":{"__proto__":"a","constructor":"b"}}}');
  const masked = maskSecrets("config", given);
  assert.equal(JSON.stringify(masked), '{"settings":{"headers":{"__proto__":"***","constructor":"***"}}}');
  const { missing } = restoreSecrets("config", masked, { settings: { headers: {} } });
  assert.deepEqual(missing, ["/settings/headers/__proto__", "/settings/headers/constructor"]);
});

test("users, accounts, keys and settings have theirs", () => {
  assert.deepEqual(maskSecrets("user", { password_hash: "$argon2id$", role: "admin" }), {
    password_hash: MASK,
    role: "admin",
  });
  assert.deepEqual(maskSecrets("tsig-key", { secret: "c2VjcmV0" }), { secret: MASK });
  assert.deepEqual(maskSecrets("service-account", { secret_hash: "00" }), { secret_hash: MASK });
  assert.deepEqual(maskSecrets("config", { settings: { client_secret: "x", headers: { a: "b" }, issuer: "i" } }), {
    settings: { client_secret: MASK, headers: { a: MASK }, issuer: "i" },
  });
});

test("bodies of the wrong shape pass through unharmed", () => {
  for (const body of [undefined, null, 7, "text", [], { health_check_template: null }]) {
    assert.deepEqual(maskSecrets("record", body), body);
  }
});

test("what has no kind is masked by the names of its members", () => {
  assert.deepEqual(maskByName({ a: [{ password: "x", n: 1 }], token: "t", secret: null }), {
    a: [{ password: MASK, n: 1 }],
    token: MASK,
    secret: null,
  });
});

test("a resource of the API leads to its kind", () => {
  assert.equal(kindOfResource("record"), "record");
  assert.equal(kindOfResource("service_account"), "service-account");
  assert.equal(kindOfResource("tsig-keys"), "tsig-key");
  assert.equal(kindOfResource("auth"), undefined);
});

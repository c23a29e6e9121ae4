import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  effectiveIdp,
  type IdpSettings,
  type IdpUpdate,
  idpFaults,
  localPath,
  mergeIdp,
  nameForSubject,
  personOf,
} from "./idp.ts";

const ISSUER = "https://id.corp.example";
const WHOLE: IdpSettings = {
  enabled: true,
  issuer: ISSUER,
  client_id: "signpost",
  client_secret: "s3cret",
  redirect_uri: "https://dns.corp.example:8443/api/v1/auth/idp/callback",
  role_mapping: { "dns-admins": "admin", "dns-team": "editor" },
};
const faultsOf = (stored: IdpSettings, given: IdpUpdate) =>
  idpFaults(stored, given, mergeIdp(stored, given)).map(({ pointer }) => pointer);
const outcomeOf = (settings: IdpSettings, claims: Record<string, unknown>) =>
  personOf(effectiveIdp(settings), ISSUER, claims);

test("settings are changed by field; null removes, *** keeps the secret", () => {
  assert.deepEqual(mergeIdp(WHOLE, { client_secret: "***", role_mapping: null }), {
    ...Object.fromEntries(Object.entries(WHOLE).filter(([name]) => name !== "role_mapping")),
  });
  assert.equal(mergeIdp(WHOLE, { client_secret: null }).client_secret, undefined);
  assert.deepEqual(faultsOf(WHOLE, { client_secret: "***" }), []);
  assert.deepEqual(faultsOf({}, { client_secret: "***" }), ["/client_secret"]);
  assert.deepEqual(faultsOf({}, { enabled: true }), ["/issuer", "/client_id", "/redirect_uri"]);
  assert.deepEqual(faultsOf({}, { scopes: ["profile"] }), ["/scopes"]);
});

test("a stored secret is never sent to another issuer", () => {
  assert.deepEqual(faultsOf(WHOLE, { issuer: "https://evil.example" }), ["/client_secret"]);
  assert.deepEqual(faultsOf(WHOLE, { issuer: "https://evil.example", client_secret: "***" }), ["/client_secret"]);
  assert.deepEqual(faultsOf(WHOLE, { issuer: null, enabled: false }), ["/client_secret"]);
  assert.deepEqual(faultsOf(WHOLE, { issuer: "https://new.example", client_secret: "another" }), []);
  assert.deepEqual(faultsOf(WHOLE, { issuer: "https://new.example", client_secret: null }), []);
});

test("issuers and redirects are https, or http on this machine", () => {
  for (const issuer of [
    "http://id.corp.example",
    "ftp://x",
    "id.corp.example",
    "https://u:p@id.corp.example",
    "https://id/?a=b",
    "http://127.0.0.1.evil.example",
    "https://169.254.169.254",
    "https://0xa9fea9fe/realms/a",
    "https://[fe80::1]",
    "https://[::ffff:169.254.169.254]",
  ]) {
    assert.deepEqual(faultsOf({}, { issuer }), ["/issuer"], issuer);
  }
  for (const issuer of [
    "https://id.corp.example/realms/a",
    "http://127.0.0.1:8090",
    "http://[::1]:80",
    "http://localhost:1",
    "https://169.255.0.1",
    "https://[fec0::1]",
  ]) {
    assert.deepEqual(faultsOf({}, { issuer }), [], issuer);
  }
  assert.deepEqual(faultsOf({}, { redirect_uri: "https://dns.corp.example/elsewhere" }), ["/redirect_uri"]);
});

test("of several claims the greatest role counts, and without one the default", () => {
  const role = (settings: IdpSettings, claims: Record<string, unknown>) => {
    const outcome = outcomeOf(settings, { sub: "1", ...claims });
    return outcome.kind === "admitted" ? outcome.person.role : "refused";
  };
  assert.equal(role(WHOLE, { groups: ["x", "dns-team", "dns-admins"] }), "admin");
  assert.equal(role(WHOLE, { groups: "dns-team" }), "editor");
  assert.equal(role(WHOLE, { groups: ["constructor", "__proto__", 7] }), "refused");
  assert.equal(role(WHOLE, {}), "refused");
  assert.equal(role({ ...WHOLE, default_role: "readonly" }, {}), "readonly");
  assert.equal(role({ ...WHOLE, role_claim: "realm.roles" }, { realm: { roles: ["dns-team"] } }), "editor");
  assert.equal(role({ ...WHOLE, role_claim: "urn:x.y" }, { "urn:x.y": "dns-team" }), "editor");
});

test("an allowed domain asks for a verified address in it", () => {
  const settings: IdpSettings = { ...WHOLE, default_role: "readonly", allowed_domains: ["Corp.example"] };
  const kind = (claims: Record<string, unknown>) => outcomeOf(settings, { sub: "1", ...claims }).kind;
  assert.equal(kind({ email: "a@corp.EXAMPLE", email_verified: true }), "admitted");
  assert.equal(kind({ email: "a@corp.example", email_verified: false }), "refused");
  assert.equal(kind({ email: "a@corp.example" }), "refused");
  assert.equal(kind({ email: "a@evil-corp.example", email_verified: true }), "refused");
  assert.equal(kind({ email: "corp.example", email_verified: true }), "refused");
});

test("a person's name is the first that can be one", () => {
  const name = (claims: Record<string, unknown>) => {
    const outcome = outcomeOf({ ...WHOLE, default_role: "readonly" }, claims);
    return outcome.kind === "admitted" ? outcome.person.username : undefined;
  };
  assert.equal(name({ sub: "1", preferred_username: "Alice", email: "a@b.example" }), "alice");
  assert.equal(name({ sub: "1", preferred_username: "Alice Smith", email: "a@b.example" }), "a@b.example");
  assert.match(name({ sub: "ünï" }) ?? "", /^user-[0-9a-f]{12}$/);
  assert.notEqual(nameForSubject("admin", "i 1"), nameForSubject("admin", "i 2"));
  assert.equal(nameForSubject("a".repeat(128), "i 1").length, 128);
});

test("a path to return to never leads to another server", () => {
  assert.equal(localPath("/zones?x=1#top"), "/zones?x=1#top");
  for (const path of [
    "//evil.example",
    "/.//evil.example",
    "/x/..//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "/\t/evil.example",
    "evil",
    "",
    undefined,
  ]) {
    assert.equal(localPath(path), "/", String(path));
  }
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.webUrl(),
        fc.string().map((text) => `/${text}`),
      ),
      (text) => {
        const url = new URL(localPath(text), "https://dns.corp.example");
        assert.equal(url.origin, "https://dns.corp.example");
      },
    ),
  );
});

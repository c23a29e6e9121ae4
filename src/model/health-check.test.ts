import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ipFromText } from "../base/ip.ts";
import { checkTarget } from "./endpoint.ts";
import {
  editsScript,
  HealthCheckCreate,
  HealthCheckUpdate,
  healthCheckFromCreate,
  healthCheckName,
  healthCheckView,
  healthCheckWithUpdate,
} from "./health-check.ts";
import * as limits from "./limits.ts";
import type { HealthCheckBody } from "./objects.ts";
import { Refusal } from "./refusal.ts";
import { checkShape } from "./shape.ts";

const TIMES = { createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-02T00:00:00.000Z" };
const KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
const CERT = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const TCP = { name: "db", protocol: "tcp", target: "db.example:5432" } as const;
const SCRIPT = { name: "job", protocol: "script", script_config: { command: "/usr/bin/true" } } as const;

function create(given: object): HealthCheckBody {
  const whole = { ...TCP, ...given };
  assert.deepEqual(checkShape(HealthCheckCreate, whole), []);
  return healthCheckFromCreate(whole, "chk_a");
}

function update(current: HealthCheckBody, given: HealthCheckUpdate): HealthCheckBody {
  assert.deepEqual(checkShape(HealthCheckUpdate, given), []);
  return healthCheckWithUpdate(current, given, TIMES);
}

function pointersOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Refusal && error.code === "invalid_request", String(error));
    return error.faults.map(({ pointer }) => pointer);
  }
  return [];
}

test("what is left out has its default, and a target has one spelling", () => {
  assert.deepEqual(create({ target: "DB.Example.:5432" }), {
    id: "chk_a",
    name: "db",
    protocol: "tcp",
    target: "db.example:5432",
    interval_seconds: 15,
    timeout_seconds: 5,
    failure_threshold: 3,
  });
  assert.equal(create({ interval_seconds: 3 }).timeout_seconds, 3);
  assert.equal(create({ target: "[2001:DB8:0::1]:53" }).target, "[2001:db8::1]:53");
  assert.deepEqual(checkTarget("db.example:5432"), { text: "db.example:5432", host: "db.example.", port: 5432 });
  assert.deepEqual(checkTarget("192.0.2.1:80"), { text: "192.0.2.1:80", host: "192.0.2.1", port: 80 });
  assert.equal("target" in create({ ...SCRIPT, target: null }), false);
});

test("a target that is no host with a port is refused", () => {
  const wrong = [
    ...["db", "db.example", "192.0.2.1", "::1", "[::1]", "2001:db8::1:53x", "db:0", "db:65536", "db:080", "db:-1"],
    ...[
      "db:",
      ":53",
      "[::1]:",
      "[db]:53",
      "192.0.2.256:80",
      "1.2.3:80",
      "http://db:80",
      "db:80/x",
      "a b:80",
      "user@db:80",
    ],
    ...["[fe80::1%eth0]:80", "[::1:80", "::1]:80", "db..x:80", ".:80", `${"a".repeat(64)}:80`, "dé:80", "db:80\n"],
  ];
  for (const target of wrong)
    assert.deepEqual(
      pointersOf(() => create({ target })),
      ["/target"],
      target,
    );
  for (const protocol of ["tcp", "http", "https"]) {
    assert.deepEqual(
      pointersOf(() => create({ protocol, target: null })),
      ["/target"],
    );
  }
});

test("the spelling of a target is that of itself", () => {
  const host = fc.oneof(
    fc.ipV4(),
    fc.ipV6().map((text) => `[${text}]`),
    fc.domain(),
    fc.domain().map((text) => `${text.toUpperCase()}.`),
  );
  fc.assert(
    fc.property(host, fc.integer({ min: 1, max: 65_535 }), (name, port) => {
      const target = checkTarget(`${name}:${port}`);
      assert.ok(target !== undefined, name);
      assert.deepEqual(checkTarget(target.text), target);
      assert.equal(target.port, port);
      assert.ok(ipFromText(target.host) !== undefined || target.host.endsWith("."));
    }),
  );
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void checkTarget(text)));
});

test("timeouts stay within the interval, also where only one of them is sent", () => {
  assert.deepEqual(
    pointersOf(() => create({ interval_seconds: 5, timeout_seconds: 6 })),
    ["/timeout_seconds"],
  );
  assert.deepEqual(
    pointersOf(() => create({ timeout_seconds: 16 })),
    ["/timeout_seconds"],
  );
  const check = create({ interval_seconds: 10, timeout_seconds: 10 });
  assert.deepEqual(
    pointersOf(() => update(check, { interval_seconds: 9 })),
    ["/timeout_seconds"],
  );
  assert.deepEqual(
    pointersOf(() => update(check, { timeout_seconds: 11 })),
    ["/timeout_seconds"],
  );
  assert.equal(update(check, { interval_seconds: 11, timeout_seconds: 11 }).timeout_seconds, 11);
  const script = create({ ...SCRIPT, target: null, script_config: { command: "/usr/bin/true", timeout_seconds: 15 } });
  const late = { script_config: { command: "/usr/bin/true", timeout_seconds: 16 } };
  assert.deepEqual(
    pointersOf(() => update(script, late)),
    ["/script_config/timeout_seconds"],
  );
  assert.deepEqual(
    pointersOf(() => update(script, { interval_seconds: 14 })),
    ["/script_config/timeout_seconds"],
  );
});

test("each protocol has its own settings and no other's", () => {
  const http_config = { path: "/healthz", expected_status: [200, 204] };
  const { script_config } = SCRIPT;
  const mtls = { cert_pem: CERT, key_pem: KEY };
  assert.deepEqual(create({ protocol: "http", http_config }).http_config, http_config);
  assert.deepEqual(
    pointersOf(() => create({ http_config })),
    ["/http_config"],
  );
  assert.deepEqual(
    pointersOf(() => create({ ...SCRIPT, http_config })),
    ["/http_config"],
  );
  assert.deepEqual(
    pointersOf(() => create({ script_config })),
    ["/script_config"],
  );
  assert.deepEqual(
    pointersOf(() => create({ protocol: "script" })),
    ["/script_config"],
  );
  assert.deepEqual(
    pointersOf(() => create({ protocol: "http", http_config: { mtls } })),
    ["/http_config/mtls"],
  );
  assert.deepEqual(
    pointersOf(() => create({ protocol: "https", http_config: { headers: { Host: "x" } } })),
    ["/http_config/headers/Host"],
  );
  const check = create({ protocol: "https", http_config });
  assert.deepEqual(
    pointersOf(() => update(check, { protocol: "tcp" })),
    ["/http_config"],
  );
  assert.equal("http_config" in update(check, { protocol: "tcp", http_config: null }), false);
});

test("a command is the path of a program, and arguments are texts", () => {
  const command = (text: string) => pointersOf(() => create({ ...SCRIPT, script_config: { command: text } }));
  for (const text of ["/usr/bin/true", "/opt/my checks/a-b_c.sh"]) assert.deepEqual(command(text), [], text);
  const wrong = [
    "true",
    "./true",
    "/",
    "/usr/bin/",
    "/usr//bin/true",
    "/usr/../etc/x",
    "/usr/./x",
    "/a\nb",
    "/é",
    "/a ",
    "/a\0b",
  ];
  for (const text of wrong) assert.deepEqual(command(text), ["/script_config/command"], JSON.stringify(text));
  const args = (...texts: string[]) =>
    pointersOf(() => create({ ...SCRIPT, script_config: { command: "/usr/bin/true", args: texts } }));
  assert.deepEqual(args("", "-v", "two\nlines", "ünïcode"), []);
  assert.deepEqual(args("fine", "a\0b"), ["/script_config/args/1"]);
});

test("names are printable and have one spelling", () => {
  assert.equal(healthCheckName("Cafe\u0301 (EU) \u{1F680}"), "Café (EU) \u{1F680}");
  for (const text of ["", " ", " a", "a ", "a\n", "a\tb", "a\u2028b", "\u200bx", "\ud800", "a\u0000"]) {
    assert.equal(healthCheckName(text), undefined, JSON.stringify(text));
  }
  assert.equal(healthCheckName("é".repeat(limits.HEALTH_CHECK_NAME_CHARACTERS_MAX)) !== undefined, true);
  assert.deepEqual(
    pointersOf(() => create({ name: " a" })),
    ["/name"],
  );
});

test("a check that does not fit into the store is refused", () => {
  const value = "x".repeat(limits.HEADER_VALUE_MAX);
  const headers = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`X-${index}`, value]));
  assert.deepEqual(
    pointersOf(() => create({ protocol: "http", http_config: { headers } })),
    ["/http_config"],
  );
  const args = Array.from({ length: limits.SCRIPT_ARGS_MAX }, () => "x".repeat(limits.SCRIPT_ARG_CHARACTERS_MAX));
  assert.deepEqual(
    pointersOf(() => create({ ...SCRIPT, script_config: { command: "/usr/bin/true", args } })),
    ["/script_config"],
  );
});

test("secrets stay where a change leaves them, and do not follow a check to another peer", () => {
  const oauth2 = { token_url: "https://login.example/", client_id: "id", client_secret: "hush" };
  const http_config = { headers: { "X-Key": "abc" }, oauth2, mtls: { cert_pem: CERT, key_pem: KEY }, ca_pem: CERT };
  const check = create({ protocol: "https", target: "app.example:443", http_config });
  assert.doesNotMatch(JSON.stringify(healthCheckView(check, TIMES)), /hush|abc|PRIVATE/);
  const all = ["/http_config/headers/X-Key", "/http_config/oauth2/client_secret", "/http_config/mtls/key_pem"];
  // Nothing of http_config is sent, and yet its secrets would go there.
  assert.deepEqual(
    pointersOf(() => update(check, { target: "evil.example:443" })),
    all,
  );
  assert.deepEqual(
    pointersOf(() => update(check, { target: "192.0.2.1:443" })),
    all,
  );
  assert.deepEqual(
    pointersOf(() => update(check, { protocol: "http" })),
    all,
  );
  const masked = { ...http_config, headers: { "x-key": "***" }, oauth2: { ...oauth2, client_secret: "***" } };
  const both = { ...masked, mtls: { cert_pem: CERT, key_pem: "***" } };
  const moved = (more: object) => pointersOf(() => update(check, { http_config: { ...both, ...more } })).length;
  assert.equal(moved({ host: "evil.example" }), 3);
  assert.equal(moved({ ca_pem: `${CERT}${CERT}` }), 3);
  assert.equal(moved({ oauth2: { ...oauth2, client_secret: "***", token_url: "https://evil.example/" } }), 1);
  assert.equal(moved({ path: "/other" }), 0);
  assert.deepEqual(update(check, { target: "APP.example.:8443" }).http_config, http_config);
  assert.deepEqual(update(check, { http_config: both }).http_config?.oauth2, oauth2);
  const anew = update(check, { target: "other.example:443", http_config });
  assert.deepEqual([anew.target, anew.http_config], ["other.example:443", http_config]);
  assert.deepEqual(
    pointersOf(() => create({ protocol: "https", http_config: both })),
    ["/http_config/headers/x-key", ...all.slice(1)],
  );
});

test("an update changes what it names, null takes away, and read-only fields may come back", () => {
  const check = create({ comment: "old", failure_threshold: 7 });
  const view = healthCheckView(check, TIMES);
  const same = pointersOf(() => assert.deepEqual(update(check, { ...view }), check));
  assert.deepEqual(same, []);
  assert.deepEqual(update(check, { comment: null, name: "db2" }), {
    ...create({ failure_threshold: 7 }),
    name: "db2",
  });
  assert.deepEqual(
    pointersOf(() => update(check, { id: "chk_b", created_at: "2020-01-01T00:00:00Z" })),
    ["/id", "/created_at"],
  );
});

test("which changes make, take away or change a script", () => {
  const script_config = { command: "/usr/bin/true", args: ["a"] };
  const tcp = create({});
  const script = create({ ...SCRIPT, target: null, script_config });
  const rows: readonly (readonly [HealthCheckBody | undefined, HealthCheckUpdate, boolean])[] = [
    [undefined, { protocol: "tcp" }, false],
    [undefined, { protocol: "script" }, true],
    [undefined, { protocol: "tcp", script_config }, true],
    [tcp, { interval_seconds: 5 }, false],
    [tcp, { protocol: "http" }, false],
    [tcp, { protocol: "script" }, true],
    [tcp, { script_config }, true],
    [tcp, { script_config: null }, false],
    [script, { interval_seconds: 60, comment: "x", name: "y" }, false],
    [script, { protocol: "script", script_config: { ...script_config, args: ["a"] } }, false],
    [script, { script_config: { ...script_config, args: ["b"] } }, true],
    [script, { script_config: { command: "/usr/bin/true" } }, true],
    [script, { script_config: { ...script_config, timeout_seconds: 1 } }, true],
    [script, { script_config: null }, true],
    [script, { protocol: "tcp" }, true],
  ];
  for (const [current, given, expected] of rows)
    assert.equal(editsScript(current, given), expected, JSON.stringify(given));
});

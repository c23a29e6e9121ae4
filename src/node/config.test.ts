import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { ipToText } from "../base/ip.ts";
import { addressToText } from "../listen/address.ts";
import { type Config, loadConfig } from "./config.ts";

const directory = mkdtempSync(join(tmpdir(), "signpost-config-"));
after(() => rmSync(directory, { recursive: true }));

const FILE = join(directory, "signpost.yaml");

/** The settings of a file with this text. */
function load(text: string, environment: NodeJS.ProcessEnv = {}): Config {
  writeFileSync(FILE, text);
  return loadConfig(environment, FILE);
}

/** Every fault that stops the start, without the file's name. */
function faultsOf(text: string, environment: NodeJS.ProcessEnv = {}): readonly string[] {
  let caught: unknown;
  try {
    load(text, environment);
  } catch (error) {
    caught = error;
  }
  assert.ok(caught instanceof OperatorError, `not refused: ${text}`);
  const faults = caught.details.length === 0 ? [caught.message] : caught.details;
  if (caught.details.length > 0) assert.equal(caught.message, `the configuration has ${faults.length} faults`);
  return faults.map((fault) => fault.replaceAll(`${FILE}:`, ""));
}

/** Every setting, each away from its default. */
const FULL = `
node: { id: node-1, region: eu-west, data_dir: /var/lib/signpost }
dns:
  listen: ["0.0.0.0:53", "[::]:53"]
  threads: 8
  max_udp_size: 4096
  udp: dgram
  client_subnet_sources: [10.0.0.0/8]
  tsig_md5: true
api:
  listen: "0.0.0.0:8443"
  tls_cert_file: /etc/signpost/tls.crt
  tls_key_file: /etc/signpost/tls.key
  allowed_origins: ["https://console.corp.example", "http://localhost:5173"]
  trusted_proxies: [192.0.2.1, 10.0.0.0/8, "2001:db8::/32"]
management: { listen: "127.0.0.1:0" }
forwarders: { ca_file: upstreams.pem }
replication:
  listen: "0.0.0.0:7946"
  advertise: "192.0.2.9:7946"
  encrypt_key: "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
  join: ["node-2.corp.example:7946", "[2001:db8::2]:7946"]
  push_pull_interval_seconds: 60
  readyz_queue_threshold: 0
transport: { cert_file: dot.crt, key_file: dot.key }
auth: { initial_admin_password: "correct horse battery", service_account_scope: cluster }
script_checks: { enabled: true, runner_socket: /run/runner.sock, user: nobody, directory: /srv/checks }
notifications:
  enabled: true
  webhook_url: "http://127.0.0.1:9000/hook?x=y"
  webhook_secret: s
  eventgrid_topic_endpoint: "https://topic.example/api/events"
  event_types: [failover.activated, backup.failed]
  min_interval_seconds: 0
cloud: { metadata_url: "http://127.0.0.1:9001" }
audit: { retention_days: 30 }
backup: { schedule: "30 2 * * 1-5", directory: /backup, keep: 3, passphrase: "a passphrase" }
query_log: { file: /var/log/queries, dnstap_socket: /run/dnstap.sock }
log: { level: debug, format: json }
`;

test("without a file and variables the embedded defaults apply; so they do with empty sections", () => {
  for (const config of [
    loadConfig({ HOME: "/root", SVCX: "1" }, undefined),
    load(""),
    load("# nothing\n"),
    load("dns:\napi: {}\nnode: { id, region, data_dir }\n"),
  ]) {
    assert.deepEqual(config["dns.listen"].map(addressToText), ["127.0.0.1:5353"]);
    assert.equal(addressToText(config["api.listen"]), "127.0.0.1:8443");
    assert.equal(addressToText(config["management.listen"]), "127.0.0.1:8080");
    assert.equal(config["node.id"], undefined);
    assert.equal(config["node.data_dir"], "./data");
    assert.equal(config["replication.encrypt_key"], undefined);
    assert.equal(config["audit.retention_days"], 90);
    assert.deepEqual(config["api.trusted_proxies"], []);
    assert.equal(config["auth.service_account_scope"], "issuing-node");
  }
});

test("a file sets every setting", () => {
  const config = load(FULL);
  const plain = Object.fromEntries(
    Object.entries(config).filter(([name]) => !/listen|trusted_proxies|client_subnet/.test(name)),
  );
  assert.deepEqual(plain, {
    "node.id": "node-1",
    "node.region": "eu-west",
    "node.data_dir": "/var/lib/signpost",
    "dns.threads": 8,
    "dns.max_udp_size": 4096,
    "dns.udp": "dgram",
    "dns.tsig_md5": true,
    "api.tls_cert_file": "/etc/signpost/tls.crt",
    "api.tls_key_file": "/etc/signpost/tls.key",
    "api.allowed_origins": ["https://console.corp.example", "http://localhost:5173"],
    "forwarders.ca_file": "upstreams.pem",
    "replication.advertise": "192.0.2.9:7946",
    "replication.encrypt_key": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "replication.join": ["node-2.corp.example:7946", "[2001:db8::2]:7946"],
    "replication.push_pull_interval_seconds": 60,
    "replication.readyz_queue_threshold": 0,
    "transport.cert_file": "dot.crt",
    "transport.key_file": "dot.key",
    "auth.initial_admin_password": "correct horse battery",
    "auth.service_account_scope": "cluster",
    "script_checks.enabled": true,
    "script_checks.runner_socket": "/run/runner.sock",
    "script_checks.user": "nobody",
    "script_checks.directory": "/srv/checks",
    "notifications.enabled": true,
    "notifications.webhook_url": "http://127.0.0.1:9000/hook?x=y",
    "notifications.webhook_secret": "s",
    "notifications.eventgrid_topic_endpoint": "https://topic.example/api/events",
    "notifications.event_types": ["failover.activated", "backup.failed"],
    "notifications.min_interval_seconds": 0,
    "cloud.metadata_url": "http://127.0.0.1:9001",
    "audit.retention_days": 30,
    "backup.schedule": "30 2 * * 1-5",
    "backup.directory": "/backup",
    "backup.keep": 3,
    "backup.passphrase": "a passphrase",
    "query_log.file": "/var/log/queries",
    "query_log.dnstap_socket": "/run/dnstap.sock",
    "log.level": "debug",
    "log.format": "json",
  });
  assert.deepEqual(config["dns.listen"].map(addressToText), ["0.0.0.0:53", "[::]:53"]);
  assert.deepEqual(
    config["api.trusted_proxies"].map(({ address, prefixBits }) => `${ipToText(address)}/${prefixBits}`),
    ["192.0.2.1/32", "10.0.0.0/8", "2001:db8::/32"],
  );
});

test("every setting has its variable, and a variable goes before the file", () => {
  const config = load(FULL, {
    SVC_NODE_ID: "other",
    SVC_DNS_LISTEN: "127.0.0.1:0, 127.0.0.1:0",
    SVC_REPLICATION_JOIN: "",
    SVC_REPLICATION_READYZ_QUEUE_THRESHOLD: "7",
    SVC_NOTIFICATIONS_ENABLED: "false",
    SVC_NOTIFICATIONS_EVENT_TYPES: "cluster.node_joined,cluster.node_left",
    SVC_API_TRUSTED_PROXIES: "::1",
    SVC_AUTH_INITIAL_ADMIN_PASSWORD: " spaces are part of it ",
  });
  assert.equal(config["node.id"], "other");
  assert.equal(config["dns.listen"].length, 2, "port 0 may stand twice: each listener gets a port of its own");
  assert.deepEqual(config["replication.join"], []);
  assert.equal(config["replication.readyz_queue_threshold"], 7);
  assert.equal(config["notifications.enabled"], false);
  assert.deepEqual(config["notifications.event_types"], ["cluster.node_joined", "cluster.node_left"]);
  assert.equal(config["api.trusted_proxies"][0]?.prefixBits, 128);
  assert.equal(config["auth.initial_admin_password"], " spaces are part of it ");
  assert.equal(config["node.region"], "eu-west");
});

test("an unknown key is named with its line and the nearest right one", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["dns:\n  lissen: []\n", "2: unknown key dns.lissen; did you mean dns.listen?"],
    ["\n\ndsn:\n  listen: []\n", "3: unknown key dsn; did you mean dns?"],
    ["dns:\n  data_dir: x\n", "2: unknown key dns.data_dir; did you mean node.data_dir?"],
    ["encrypt_key: x\n", "1: unknown key encrypt_key; did you mean replication.encrypt_key?"],
    ["__proto__: { x: 1 }\n", "1: unknown key __proto__; did you mean node?"],
    ["dns: { toString: 1 }\n", "1: unknown key dns.toString; did you mean dns.listen?"],
    ["dns: { constructor: 1 }\n", "1: unknown key dns.constructor; did you mean dns.listen?"],
    ["dns: { ? [a, b] : 1 }\n", '1: a key is a word such as "listen"'],
    ["dns: 5\n", "1: dns is a section; its settings stand below it, indented"],
    ["- dns\n", '1: the file holds sections with settings, such as "dns:"'],
  ];
  for (const [text, fault] of cases) assert.deepEqual(faultsOf(text), [fault], text);
});

test("a value of the wrong type or range is named with its line and key", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["dns:\n  threads: '8'\n", /^2: dns\.threads takes a whole number, without quotes$/],
    ["dns:\n  threads: 64\n", /^2: dns\.threads is "64"; it takes a whole number from 0 to 58$/],
    ["dns: { threads: 1.5 }", /^1: dns\.threads is "1\.5"; it takes a whole/],
    ["dns: { threads: -1 }", /^1: dns\.threads is "-1"/],
    ["dns: { threads: .inf }", /^1: dns\.threads is "Infinity"/],
    ["dns: { threads: [1] }", /^1: dns\.threads takes one value$/],
    ["dns: { listen: { a: b } }", /^1: dns\.listen takes a list of texts/],
    ["dns: { listen: [53] }", /^1: dns\.listen takes a list of texts/],
    ["dns: { listen: [] }", /^1: dns\.listen is empty$/],
    ["dns: { listen: ['[::1]:53', '[0::1]:53'] }", /^1: dns\.listen names \[::1\]:53 twice$/],
    ["dns: { listen: ['localhost:53'] }", /^1: dns\.listen has "localhost:53", which is no address and port/],
    ["node: { id: 7 }", /^1: node\.id takes text; put the value in quotes$/],
    ["node: { id: a/b }", /^1: node\.id is "a\/b"; it takes letters/],
    ["node: { data_dir: '' }", /^1: node\.data_dir is empty$/],
    ["notifications: { enabled: 'yes' }", /^1: notifications\.enabled takes true or false$/],
    [
      "api: { allowed_origins: ['https://a.example/'] }",
      /^1: api\.allowed_origins has "https:\/\/a\.example\/", which is no/,
    ],
    ["api: { allowed_origins: ['*'] }", /is no origin/],
    ["api: { trusted_proxies: [10.1.0.0/8] }", /^1: api\.trusted_proxies has "10\.1\.0\.0\/8", whose address has bits/],
    ["replication: { join: ['node-2'] }", /^1: replication\.join has "node-2", which is no host and port/],
    ["replication: { join: ['[fe80::1%eth0]:7946'] }", /no host and port/],
    ["replication: { advertise: '192.0.2.256:1' }", /no host and port/],
    [
      "notifications: { event_types: [failover.activate] }",
      /has "failover\.activate"; did you mean failover\.activated\?$/,
    ],
    ["backup: { schedule: '60 * * * *' }", /^1: backup\.schedule is "60 \* \* \* \*"; it takes five cron fields/],
    ["backup: { schedule: daily }", /five cron fields/],
    ["auth: { service_account_scope: node }", /one of issuing-node, cluster$/],
    ["log: { level: trace }", /^1: log\.level is "trace"; it takes one of debug, info, warn, error$/],
  ];
  for (const [text, pattern] of cases) {
    const faults = faultsOf(text);
    assert.equal(faults.length, 1, text);
    assert.match(faults[0] ?? "", pattern);
  }
});

test("peers must be able to dial a node that has a cluster", () => {
  const key = "encrypt_key: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
  const cases: readonly (readonly [string, RegExp | undefined])[] = [
    ["join: ['192.0.2.1:7946']", /^replication\.join needs replication\.encrypt_key/],
    ["listen: '0.0.0.0:7946'", undefined],
    [`listen: '0.0.0.0:7946', ${key}`, /^replication\.listen is a wildcard address, so that replication\.advertise/],
    [`listen: '[::]:7946', ${key}`, /wildcard address/],
    [`listen: '0.0.0.0:7946', advertise: 'node-1.example:7946', ${key}`, undefined],
    [`listen: '192.0.2.1:0', ${key}`, undefined],
    [key, undefined],
    [`join: ['192.0.2.1:7946'], ${key}`, /^replication\.listen is a loopback address/],
    [`join: ['[2001:db8::1]:7946'], ${key}`, /loopback address/],
    [`join: ['127.0.0.2:7946', '[::1]:7946', 'node-2.example:7946'], ${key}`, undefined],
    [`listen: '192.0.2.9:7946', join: ['192.0.2.1:7946'], ${key}`, undefined],
    ["join: ['192.0.2.1:7946'], encrypt_key: short", /^1: replication\.encrypt_key is shorter/],
    [`listen: '0.0.0.0:7946', advertise: '192.0.2.1:0', ${key}`, /^1: replication\.advertise has "192\.0\.2\.1:0"/],
    [`listen: '192.0.2.1:65536', ${key}`, /^1: replication\.listen has "192\.0\.2\.1:65536"/],
    [`join: ['192.0.2.1:7946', '192.0.2.1:7946'], ${key}`, /^1: replication\.join names 192\.0\.2\.1:7946 twice/],
  ];
  for (const [text, pattern] of cases) {
    const yaml = `replication: { ${text} }`;
    if (pattern === undefined) {
      load(yaml);
      continue;
    }
    const faults = faultsOf(yaml);
    assert.equal(faults.length, 1, text);
    assert.match(faults[0] ?? "", pattern);
  }
});

test("all faults are told at once, those of the file in its order", () => {
  assert.deepEqual(
    faultsOf("dns:\n  threads: x\n  lissen: []\nlog: { level: loud, levle: info }\napi: { tls_key_file: x }\n", {
      SVC_DNS_TREADS: "1",
      SVC_DNS_UDP: "Batch",
    }),
    [
      "2: dns.threads takes a whole number, without quotes",
      "3: unknown key dns.lissen; did you mean dns.listen?",
      "4: unknown key log.levle; did you mean log.level?",
      "unknown environment variable SVC_DNS_TREADS; did you mean SVC_DNS_THREADS?",
      '4: log.level is "loud"; it takes one of debug, info, warn, error',
      'SVC_DNS_UDP is "Batch"; it takes one of auto, batch, dgram',
      "api.tls_key_file needs api.tls_cert_file",
    ],
  );
});

test("a key that stands twice hides no other fault", () => {
  assert.deepEqual(
    faultsOf(
      "dns:\n  lissen: []\n  threads: 1\n  threads: x\n  udp: Batch\nlog: { level: info, level: loud }\n" +
        "dns:\n  lissen: []\n  threads: 2\nnotifications: { enabled: true }\n",
    ),
    [
      "2: unknown key dns.lissen; did you mean dns.listen?",
      "4: the key stands here a second time",
      "4: dns.threads takes a whole number, without quotes",
      "6: the key stands here a second time",
      "7: the key stands here a second time",
      "8: unknown key dns.lissen; did you mean dns.listen?",
      '5: dns.udp is "Batch"; it takes one of auto, batch, dgram',
      '6: log.level is "loud"; it takes one of debug, info, warn, error',
      "notifications.enabled is true without a sink; set notifications.webhook_url or notifications.eventgrid_topic_endpoint",
    ],
  );
  assert.deepEqual(faultsOf("dns: { listen: ['192.0.2.1:53'], listen: ['192.0.2.1:53'] }"), [
    "1: the key stands here a second time",
  ]);
});

test("what is no YAML is named with its line and never repeated", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["dns:\n  threads: 1\n  threads: 2\n", /^3: the key stands here a second time$/],
    ["dns: {}\nlog: {}\ndns: {}\n", /^3: the key stands here a second time$/],
    ["dns: {}\n---\ndns: {}\n", /^2: a second document begins here/],
    ["dns:\n\tthreads: 1\n", /^2: a tab/],
    ["dns: [1, 2\n", /^2: /],
    ["replication:\n  encrypt_key: hidden: text\n", /^2: a value holds/],
    ["replication:\n  encrypt_key: *hidden\n", /^2: replication\.encrypt_key takes text; put the value in quotes$/],
    ["replication:\n  encrypt_key: !hidden text\n", /^2: a value begins with "!"/],
    ['replication:\n  encrypt_key: "hidden\\q"\n', /^2: /],
    ["replication:\n  encrypt_key: @hidden\n", /^2: /],
    ["replication: &anchor {}\ndns: *anchor\n", /^2: dns is a section/],
  ];
  for (const [text, pattern] of cases) {
    const faults = faultsOf(text);
    assert.match(faults[0] ?? "", pattern, text);
    assert.ok(!faults.join("\n").includes("hidden"), text);
  }
});

test("a file that cannot be read is one clear line", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [join(directory, "none.yaml"), /^there is no configuration file \S+none\.yaml$/],
    [directory, /^cannot read the configuration file .*: is a directory$/],
    ["/dev/zero", /it is no regular file$/],
  ];
  writeFileSync(join(directory, "binary.yaml"), Uint8Array.of(0xff, 0xfe, 0));
  writeFileSync(join(directory, "large.yaml"), `#${"x".repeat(2 ** 20)}`);
  for (const [file, pattern] of [
    ...cases,
    [join(directory, "binary.yaml"), /: it is not UTF-8$/] as const,
    [join(directory, "large.yaml"), /larger than 1048576 bytes$/] as const,
  ]) {
    assert.throws(
      () => loadConfig({}, file),
      (error) => error instanceof OperatorError && pattern.test(error.message),
    );
  }
});

test("an unusable variable or an unknown name is refused by its name", () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["SVC_NODE_ID", "x".repeat(64), /^SVC_NODE_ID is longer than 63 bytes$/],
    ["SVC_NODE_DATA_DIR", " ", /^SVC_NODE_DATA_DIR is empty$/],
    ["SVC_DNS_LISTEN", "127.0.0.1:53,", /^SVC_DNS_LISTEN has "", which is no address/],
    ["SVC_DNS_THREADS", "1.5", /^SVC_DNS_THREADS is "1\.5"; it takes a whole number from 0 to 58$/],
    ["SVC_SCRIPT_CHECKS_ENABLED", "1", /^SVC_SCRIPT_CHECKS_ENABLED is "1"; it takes true or false$/],
    ["SVC_DNS_TREADS", "1", /^unknown environment variable SVC_DNS_TREADS; did you mean SVC_DNS_THREADS\?$/],
    ["SVC_LOG_LEVEL_", "info", /did you mean SVC_LOG_LEVEL\?$/],
    ["SVC_REPLICATON_ENCRYPT_KEY", "x", /did you mean SVC_REPLICATION_ENCRYPT_KEY\?$/],
    ["SVC_NODE_ID_FILE", "x", /^unknown environment variable SVC_NODE_ID_FILE/],
  ];
  for (const [name, text, pattern] of cases) {
    const faults = faultsOf("", { [name]: text });
    assert.equal(faults.length, 1, name);
    assert.match(faults[0] ?? "", pattern);
  }
});

test("a secret may lie in a file; a fault never tells what is in it", () => {
  const file = join(directory, "secret");
  const setting = "SVC_REPLICATION_ENCRYPT_KEY";
  const key = "0123456789abcdefghijklmnop";
  for (const [text, expected] of [
    [key, key],
    [`${key}\n`, key],
    [`${key}\r\n`, key],
    [`${key}\n\n`, `${key}\n`],
    [` ${key}`, ` ${key}`],
  ] as const) {
    writeFileSync(file, text);
    assert.equal(load("", { [`${setting}_FILE`]: file })["replication.encrypt_key"], expected);
  }
  const refused: readonly (readonly [NodeJS.ProcessEnv, RegExp])[] = [
    [
      { [`${setting}_FILE`]: file, [setting]: key },
      /^SVC_REPLICATION_ENCRYPT_KEY and SVC_REPLICATION_ENCRYPT_KEY_FILE are both set/,
    ],
    [{ [`${setting}_FILE`]: join(directory, "none") }, /^SVC_REPLICATION_ENCRYPT_KEY_FILE: there is no file /],
    [{ [`${setting}_FILE`]: directory }, /^SVC_REPLICATION_ENCRYPT_KEY_FILE: cannot read the file .*: is a directory$/],
    [{ [setting]: "planted" }, /^SVC_REPLICATION_ENCRYPT_KEY is shorter than 24 characters$/],
    [{ SVC_AUTH_INITIAL_ADMIN_PASSWORD: "planted" }, /^SVC_AUTH_INITIAL_ADMIN_PASSWORD is shorter than 16 characters$/],
  ];
  for (const [environment, pattern] of refused) {
    const [fault = ""] = faultsOf("", environment);
    assert.match(fault, pattern);
    assert.ok(!fault.includes("planted"));
  }
  for (const [bytes, pattern] of [
    ["planted\n", /^SVC_REPLICATION_ENCRYPT_KEY_FILE is shorter than 24 characters$/],
    ["\n", /the file \S+ is empty$/],
    [Uint8Array.of(0xff, 0x70), /is not UTF-8$/],
  ] as const) {
    writeFileSync(file, bytes);
    const [fault = ""] = faultsOf("", { [`${setting}_FILE`]: file });
    assert.match(fault, pattern);
    assert.ok(!fault.includes("planted"));
  }
});

test("notifications need a sink, over HTTPS or to this machine", () => {
  const cases: readonly (readonly [string, RegExp | undefined])[] = [
    ["enabled: true", /^notifications\.enabled is true without a sink/],
    ["enabled: true, event_types: []", /without a sink/],
    ["enabled: true, webhook_url: ''", /without a sink/],
    ["enabled: false", undefined],
    ["enabled: true, webhook_url: 'https://a.example/x?y=z'", undefined],
    ["enabled: true, eventgrid_topic_endpoint: 'https://a.example/x'", undefined],
    ["webhook_url: 'http://a.example/x'", /^1: notifications\.webhook_url must begin with https:\/\//],
    ["webhook_url: 'http://127.0.0.1.a.example/x'", /must begin with https/],
    ["webhook_url: 'http://localhost:9000/x'", undefined],
    ["webhook_url: 'http://[::1]:9000/x'", undefined],
    ["webhook_url: 'ftp://a.example/x'", /is no https:\/\/ URL$/],
    ["webhook_url: 'a.example'", /is no https:\/\/ URL$/],
    ["webhook_url: 'https://u:planted@a.example'", /holds a user name or password$/],
    ["eventgrid_topic_endpoint: 'http://127.0.0.1/x'", /is no https:\/\/ URL$/],
    [
      "eventgrid_topic_endpoint: 'https://a.example/x?sig=planted'",
      /^1: notifications\.eventgrid_topic_endpoint has a query/,
    ],
    ["eventgrid_topic_endpoint: 'https://a.example/x?'", /has a query string/],
  ];
  for (const [settings, pattern] of cases) {
    const text = `notifications: { ${settings} }`;
    if (pattern === undefined) {
      load(text);
      continue;
    }
    const [fault = ""] = faultsOf(text);
    assert.match(fault, pattern);
    assert.ok(!fault.includes("planted"));
  }
});

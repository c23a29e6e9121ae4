/** Programs and libraries of the ecosystem that sign, update and transfer: certbot, lego, dnspython and Net::DNS. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startAcmeServer } from "../support/acme-server.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { signIn } from "./api-client.ts";
import { create } from "./notify-world.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-primary-clients-"));
after(() => rm(directory, { recursive: true, force: true }));
const ZONE = "example.test";
/** May do everything, and only prove that a name is its own (RFC 8555 section 8.4). */
const FULL = { name: "full.", secret: Buffer.alloc(32, 1).toString("base64") };
const ACME = { name: "acme.", secret: Buffer.alloc(32, 2).toString("base64") };

/** One node for all: each client changes names of its own. */
let node: ScenarioNode;
let port = 0;
before(async () => {
  node = await startNode();
  await using api = await signIn(node.api);
  for (const [path, body] of [
    ["/config/axfr", { enabled: true }],
    ["/config/dynamic-dns", { enabled: true }],
  ] as const) {
    assert.equal((await api.ask("PUT", path, body)).status, 200);
  }
  await create(api, "/tsig-keys", { ...FULL, algorithm: "hmac-sha256" });
  const grants = [{ zone: `${ZONE}.`, names: ["_acme-challenge", "_acme-challenge.*"], types: ["TXT"], update: true }];
  await create(api, "/tsig-keys", { ...ACME, algorithm: "hmac-sha512", grants });
  port = node.dns[0]?.port ?? 0;
});
after(() => node[Symbol.asyncDispose]());

async function texts(name: string): Promise<readonly string[]> {
  const words = ["@127.0.0.1", "-p", String(port), "+short", "+norecurse", name, "TXT"];
  const out = await runToEnd("dig", words, 30_000);
  return [...out.matchAll(/"([^"]*)"/g)].map(([, text]) => text ?? "");
}

test("certbot proves a name with a key that may do nothing else", async (t) => {
  const certbot = requireProgram(t, "certbot");
  if (certbot === undefined || requireProgram(t, "openssl") === undefined) return;
  await using acme = await startAcmeServer(texts);
  const credentials = join(directory, "certbot.ini");
  const lines = {
    server: "127.0.0.1",
    port,
    name: ACME.name,
    secret: ACME.secret,
    algorithm: "HMAC-SHA512",
  };
  const text = Object.entries(lines).map(([key, value]) => `dns_rfc2136_${key} = ${value}\n`);
  await writeFile(credentials, text.join(""), { mode: 0o600 });
  const folders = ["config", "work", "logs"].flatMap((name) => [`--${name}-dir`, join(directory, `certbot-${name}`)]);
  const plugin = ["--dns-rfc2136", "--dns-rfc2136-credentials", credentials, "--dns-rfc2136-propagation-seconds", "0"];
  const asked = [
    "-d",
    `shop.${ZONE}`,
    "--server",
    acme.directoryUrl,
    "--agree-tos",
    "--register-unsafely-without-email",
  ];
  const words = ["certonly", "--non-interactive", ...plugin, ...asked, ...folders];
  const out = await runToEnd(certbot, words, 60_000, { env: { REQUESTS_CA_BUNDLE: acme.caFile } });
  assert.match(out, /Successfully received certificate/);
  assert.deepEqual(acme.proved(), [`shop.${ZONE}`]);
  assert.deepEqual(await texts(`_acme-challenge.shop.${ZONE}`), []);
});

test("lego proves a name, and leaves nothing behind", async (t) => {
  const lego = requireProgram(t, "lego");
  if (lego === undefined || requireProgram(t, "openssl") === undefined) return;
  await using acme = await startAcmeServer(texts);
  const env = {
    LEGO_CA_CERTIFICATES: acme.caFile,
    RFC2136_NAMESERVER: `127.0.0.1:${port}`,
    RFC2136_TSIG_ALGORITHM: "hmac-sha512.",
    RFC2136_TSIG_KEY: ACME.name,
    RFC2136_TSIG_SECRET: ACME.secret,
    RFC2136_POLLING_INTERVAL: "1",
  };
  const asked = [
    "--domains",
    `lego.${ZONE}`,
    "--email",
    `admin@${ZONE}`,
    "--accept-tos",
    "--server",
    acme.directoryUrl,
  ];
  const dns = ["--dns", "rfc2136", "--dns.resolvers", `127.0.0.1:${port}`, "--dns.disable-cp"];
  await runToEnd(lego, [...asked, ...dns, "--path", join(directory, "lego"), "run"], 60_000, { env });
  assert.deepEqual(acme.proved(), [`lego.${ZONE}`]);
  assert.deepEqual(await texts(`_acme-challenge.lego.${ZONE}`), []);
});

const DNSPYTHON = `
import sys, dns.query, dns.rcode, dns.resolver, dns.tsig, dns.tsigkeyring, dns.update, dns.zone
port, secret = int(sys.argv[1]), sys.argv[2]
ring = dns.tsigkeyring.from_text({"full.": secret})
def update(change, tcp=False):
    message = dns.update.Update("example.test.", keyring=ring, keyalgorithm=dns.tsig.HMAC_SHA256)
    change(message)
    answer = (dns.query.tcp if tcp else dns.query.udp)(message, "127.0.0.1", 20, port)
    return dns.rcode.to_text(answer.rcode())
def transfer():
    stream = dns.query.xfr("127.0.0.1", "example.test.", keyring=ring, keyalgorithm=dns.tsig.HMAC_SHA256, port=port, relativize=False)
    return dns.zone.from_xfr(stream, relativize=False)
before = transfer()
print("add", update(lambda m: m.add("py", 300, "A", "192.0.2.7")))
print("again", update(lambda m: (m.absent("py"), m.add("py", 300, "A", "192.0.2.8"))))
print("replace", update(lambda m: (m.present("py", "A"), m.replace("py", 60, "A", "192.0.2.9")), tcp=True))
after = transfer()
print("has", after.get_rdataset("py.example.test.", "A"))
print("serial", after.get_rdataset("example.test.", "SOA")[0].serial > before.get_rdataset("example.test.", "SOA")[0].serial)
print("delete", update(lambda m: m.delete("py")))
print("gone", transfer().get_rdataset("py.example.test.", "A"))
`;

test("dnspython updates and transfers, signed", async (t) => {
  // What Debian's packages bring belongs to Debian's interpreter.
  const python = requireProgram(t, "/usr/bin/python3");
  if (python === undefined) return;
  const out = await runToEnd(python, ["-c", DNSPYTHON, String(port), FULL.secret], 60_000);
  assert.deepEqual(out.trim().split("\n"), [
    "add NOERROR",
    "again YXDOMAIN",
    "replace NOERROR",
    "has 60 IN A 192.0.2.9",
    "serial True",
    "delete NOERROR",
    "gone None",
  ]);
});

const NET_DNS = `
use strict; use Net::DNS;
my ($port, $secret) = @ARGV;
my $resolver = Net::DNS::Resolver->new(nameservers => ["127.0.0.1"], port => $port, recurse => 0, udp_timeout => 20, tcp_timeout => 20);
my $tsig = Net::DNS::RR->new(name => "full.", type => "TSIG", algorithm => "HMAC-SHA256", key => $secret);
$resolver->tsig($tsig);
my @zone = $resolver->axfr("example.test");
print "transferred ", (scalar(@zone) > 20 ? "all" : scalar(@zone) . " " . $resolver->errorstring), "\\n";
my $update = Net::DNS::Update->new("example.test");
$update->push(prereq => nxrrset("perl.example.test. TXT"));
$update->push(update => rr_add("perl.example.test. 300 TXT perl"));
my $reply = $resolver->send($update);
print "update ", ($reply ? $reply->header->rcode : $resolver->errorstring), " ", ($reply && $reply->verify($update) ? "verified" : "not verified"), "\\n";
my $answer = $resolver->query("perl.example.test", "TXT");
print "text ", join(",", map { $_->txtdata } grep { $_->type eq "TXT" } $answer->answer), "\\n";
my $bad = Net::DNS::Update->new("example.test");
$bad->push(update => rr_del("perl.example.test. TXT"));
$resolver->tsig(Net::DNS::RR->new(name => "nobody.", type => "TSIG", algorithm => "HMAC-SHA256", key => $secret));
my $refused = $resolver->send($bad);
print "unknown key ", ($refused ? "answered" : $resolver->errorstring), "\\n";
`;

test("Net::DNS updates, verifies what it hears, and transfers", async (t) => {
  const perl = requireProgram(t, "perl");
  if (perl === undefined) return;
  const out = await runToEnd(perl, ["-e", NET_DNS, String(port), FULL.secret], 60_000);
  assert.deepEqual(out.trim().split("\n"), [
    "transferred all",
    "update NOERROR verified",
    "text perl",
    "unknown key BADKEY",
  ]);
});

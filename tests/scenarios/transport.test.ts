/** DNS over TLS and over HTTPS of a running node, as kdig, curl and openssl see them, switched while it runs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { requireProgram } from "../support/peers.ts";
import { freePort } from "../support/ports.ts";
import { runToEnd } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import { startForwarding } from "./forward-world.ts";
import { create, figure, untilFigure } from "./notify-world.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";
import {
  caFile,
  certFile,
  certificateFor,
  env,
  kdig,
  put,
  switchOn,
  useCertificate,
  VERIFIED,
} from "./transport-world.ts";

const ADDRESSES = "192.0.2.80\n192.0.2.81\n";

/** For all that need no other settings and no restart. Its certificate is changed by the last of them only. */
let node: ScenarioNode;
before(async () => {
  node = await startNode({ env });
});
after(() => node[Symbol.asyncDispose]());

const listening = (transport: string) => `svc_transport_listening{transport="${transport}"}`;

async function isRefused(asking: Promise<string>, why: RegExp): Promise<void> {
  await assert.rejects(asking, why);
}

test("kdig asks over TLS and over HTTPS, and verifies who answers", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  const { dot, doh } = await switchOn(node);
  const question = ["www.example.test", "A"];
  const sorted = (text: string) => `${text.trim().split("\n").sort().join("\n")}\n`;
  assert.equal(sorted(await kdig(dot, "+tls", "+short", ...VERIFIED, ...question)), ADDRESSES);
  assert.equal(sorted(await kdig(doh, "+https", "+short", ...VERIFIED, ...question)), ADDRESSES);
  assert.equal(sorted(await kdig(doh, "+https-get", "+short", ...VERIFIED, ...question)), ADDRESSES);
  await isRefused(kdig(dot, `+tls-ca=${caFile}`, "+tls-hostname=other.test", ...question), /TLS/);
  assert.match(await kdig(dot, "+tls", "+keepopen", ...question, ...question), /192\.0\.2\.80[\s\S]*192\.0\.2\.80/);
  assert.match(await kdig(dot, "+tls", "+padding=128", ...question), /Received 468 B/);
  assert.match(await kdig(doh, "+https", "+padding=128", ...question), /Received 468 B/);
  assert.match(await kdig(dot, "+tls", "nope.example.test", "A"), /status: NXDOMAIN/);
  assert.ok((await figure(node, 'svc_dns_queries_total{transport="dot",type="A",rcode="NOERROR"}')) >= 4);
  assert.ok((await figure(node, 'svc_dns_queries_total{transport="doh",type="A",rcode="NOERROR"}')) >= 3);
  assert.ok((await figure(node, 'svc_transport_handshakes_failed_total{transport="dot"}')) >= 1);
});

test("openssl: TLS 1.2 and 1.3, nothing older; ALPN says what is spoken", async (t) => {
  if (requireProgram(t, "openssl") === undefined) return;
  const { dot, doh } = await switchOn(node);
  const connect = (port: number, ...words: string[]) =>
    runToEnd("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, "-CAfile", caFile, ...words], 30_000);
  assert.match(await connect(dot, "-alpn", "dot", "-tls1_3"), /ALPN protocol: dot/);
  assert.match(await connect(dot, "-tls1_2"), /Verify return code: 0/);
  await isRefused(connect(dot, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"), /alert|protocol version/i);
  assert.match(await connect(doh, "-alpn", "h2,http/1.1"), /ALPN protocol: h2/);
  assert.match(await connect(doh, "-alpn", "http/1.1"), /ALPN protocol: http\/1\.1/);
});

test("curl resolves by it, and asks with messages of its own over HTTP/2 and HTTP/1.1", async (t) => {
  if (requireProgram(t, "curl") === undefined) return;
  const { doh } = await switchOn(node);
  await using api = await signIn(node.api);
  const zone = await create(api, "/zones", { name: "here.test." });
  await create(api, `/zones/${zone}/records`, { name: "local", type: "A", ttl: 60, values: [{ value: "127.0.0.1" }] });
  const management = node.messages().flatMap((line) => /^health and metrics on .*:(\d+)$/.exec(line)?.[1] ?? [])[0];
  const url = `https://127.0.0.1:${doh}/dns-query`;
  const trust = ["--cacert", caFile];
  const resolved = ["-s", "--doh-url", url, "--doh-insecure", `http://local.here.test:${management}/healthz`];
  assert.match(await runToEnd("curl", resolved, 30_000), /"ok"/);
  const get = `${url}?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlBHRlc3QAAAEAAQ`;
  for (const version of ["--http2", "--http1.1"]) {
    const answer = await runToEnd("curl", ["-s", "-i", version, ...trust, get], 30_000);
    assert.match(answer, /^HTTP\/\S+ 200/);
    assert.match(answer, /content-type: application\/dns-message/i);
    assert.match(answer, /cache-control: max-age=3600/i);
    assert.doesNotMatch(answer, /^server:/im);
    const status = (...words: string[]) =>
      runToEnd("curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", version, ...trust, ...words], 30_000);
    assert.equal(await status(url), "400");
    assert.equal(await status("-X", "PUT", url), "405");
    assert.equal(await status("-d", "x", url), "415");
    assert.equal(await status(`https://127.0.0.1:${doh}/metrics`), "404");
    assert.equal(await status(`https://127.0.0.1:${doh}/api/v1/zones`), "404");
  }
});

test("what is not hosted here is forwarded, over both", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  await using world = await startForwarding({
    node,
    table: "a.example. 300 A 192.0.2.1\nb.example. 300 A 192.0.2.2\n",
  });
  const { dot, doh } = await switchOn(node);
  assert.equal(await kdig(dot, "+tls", "+short", "a.example", "A"), "192.0.2.1\n");
  assert.equal(await kdig(doh, "+https", "+short", "b.example", "A"), "192.0.2.2\n");
  assert.deepEqual([...world.asked()].sort(), ["a.example. A", "b.example. A"]);
  assert.equal(await kdig(doh, "+https", "+short", "a.example", "A"), "192.0.2.1\n");
  assert.equal(world.asked().length, 2);
});

test("listeners are moved and switched off while the node answers; a port in use is told and waited for", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  await using own = await startNode();
  const { dot, doh } = await switchOn(own);
  const ask = (port: number) => kdig(port, "+tls", "+short", "www.example.test", "A");
  assert.match(await ask(dot), /192\.0\.2\.80/);
  const next = await freePort();
  await put(own, { dot_listen_addr: `127.0.0.1:${next}` });
  assert.match(await ask(next), /192\.0\.2\.80/);
  await isRefused(ask(dot), /can't connect/);
  assert.match(await kdig(doh, "+https", "+short", "www.example.test", "A"), /192\.0\.2\.80/);

  const rival = createServer().listen(0, "127.0.0.1");
  await once(rival, "listening");
  const bound = rival.address();
  const taken = bound !== null && typeof bound === "object" ? bound.port : 0;
  await put(own, { dot_listen_addr: `127.0.0.1:${taken}` });
  assert.equal(await figure(own, listening("dot")), 0);
  const complaint = `DNS over TLS cannot listen on 127.0.0.1:${taken}`;
  await waitFor("it complains", 20_000, () => own.messages().some((line) => line.startsWith(complaint)));
  assert.equal((await own.get("/readyz")).status, 200);
  rival.close();
  await untilFigure(own, 'svc_transport_listening{transport="dot"}', 1);
  assert.match(await ask(taken), /192\.0\.2\.80/);

  await put(own, { dot_enabled: false, doh_enabled: false });
  await isRefused(ask(taken), /can't connect/);
  await isRefused(kdig(doh, "+https", "www.example.test", "A"), /can't connect/);
  for (const transport of ["dot", "doh"]) assert.equal(await figure(own, listening(transport)), 0);
});

test("changed certificate files are taken, also by SIGHUP, and those that cannot be used change nothing", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  const { dot } = await switchOn(node);
  const ask = (name: string) =>
    kdig(dot, `+tls-ca=${caFile}`, `+tls-hostname=${name}`, "+short", "www.example.test", "A");
  assert.match(await ask("dns.test"), /192\.0\.2\.80/);
  await useCertificate(certificateFor("renewed.test"));
  process.kill(node.child.pid, "SIGHUP");
  const taken = "DNS over TLS and HTTPS: the certificate was taken anew";
  await waitFor("it is taken", 20_000, () => node.messages().includes(taken));
  assert.match(await ask("renewed.test"), /192\.0\.2\.80/);
  await writeFile(certFile, "no certificate");
  await waitFor("it is told", 30_000, () =>
    node.messages().some((line) => line.startsWith("DNS over TLS and HTTPS: the certificate in use stays")),
  );
  assert.match(await ask("renewed.test"), /192\.0\.2\.80/);
});

test("settings hold over a restart", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  await useCertificate(certificateFor("dns.test"));
  const data = await mkdtemp(join(tmpdir(), "signpost-transport-data-"));
  after(() => rm(data, { recursive: true, force: true }));
  const port = await freePort();
  {
    await using first = await startNode({ env, directory: data });
    await put(first, { dot_enabled: true, dot_listen_addr: `127.0.0.1:${port}` });
    assert.equal(await figure(first, listening("dot")), 1);
  }
  await using again = await startNode({ env, directory: data });
  await untilFigure(again, 'svc_transport_listening{transport="dot"}', 1);
  assert.match(await kdig(port, "+tls", "+short", ...VERIFIED, "www.example.test", "A"), /192\.0\.2\.80/);
});

import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { httpSpec, listenFor, proberFor, STRICT } from "../../tests/support/probe-lab.ts";
import type { ProbeOutcome, ProbeSpec } from "./probe.ts";

const PENDING = new Promise<never>(() => {});

test("a host name is asked for once, and its addresses are tried in order until one connects", async (t) => {
  const port = await listenFor(t, createServer(), "127.0.0.1");
  const asked: string[] = [];
  const prober = proberFor(t, {
    resolveHost: (host) => {
      asked.push(host);
      // Nobody listens on the first two; what is no address is passed over.
      return Promise.resolve(["127.0.0.2", "::1", "app", "127.0.0.1"]);
    },
  });
  const spec = httpSpec(port, { protocol: "tcp", host: "app.example." });
  assert.equal((await prober.run(spec)).error, undefined);
  assert.deepEqual(asked, ["app.example."]);
});

test("no more than four addresses are tried", async (t) => {
  const port = await listenFor(t, createServer(), "127.0.0.9");
  const addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.9"];
  const prober = proberFor(t, { resolveHost: () => Promise.resolve(addresses) });
  assert.equal((await prober.run(httpSpec(port, { protocol: "tcp", host: "app.example." }))).error, "refused");
});

test("an answer is the verdict, also where another address might answer better", async (t) => {
  const port = await listenFor(
    t,
    createServer((socket) => socket.end("HTTP/1.1 500 No\r\n\r\n")),
  );
  const prober = proberFor(t, { resolveHost: () => Promise.resolve(["127.0.0.1", "127.0.0.2"]) });
  assert.equal((await prober.run(httpSpec(port, { host: "app.example." }))).error, "status");
});

const resolvers: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  "gives none": () => Promise.resolve([]),
  "gives no addresses": () => Promise.resolve(["app.example", ""]),
  fails: () => Promise.reject(new Error("SERVFAIL")),
  "never answers": () => PENDING,
};
for (const [what, resolveHost] of Object.entries(resolvers)) {
  test(`a resolver that ${what}: resolve`, async (t) => {
    const prober = proberFor(t, { resolveHost });
    const outcome = await prober.run(httpSpec(1, { host: "app.example.", timeoutMs: 200 }));
    assert.equal(outcome.error, "resolve");
    assert.equal(outcome.latencyUs, 0);
  });
}

test("closing ends what runs, at every stage, and nothing begins afterwards", async (t) => {
  const port = await listenFor(t, createServer());
  const policy = () => ({ ...STRICT, allowInsecureAuthenticatedProbes: true });
  const resolveHost = () => PENDING;
  const prober = proberFor(t, { policy, resolveHost, metadataUrl: "http://127.0.0.1:1", runScript: () => PENDING });
  const oauth2 = { token_url: `http://127.0.0.1:${port}/`, client_id: "i", client_secret: "s" };
  const timeoutMs = 600_000;
  const running = [
    prober.run(httpSpec(port, { timeoutMs })),
    prober.run(httpSpec(port, { timeoutMs, protocol: "https" })),
    prober.run(httpSpec(port, { timeoutMs, host: "app.example." })),
    prober.run(httpSpec(port, { timeoutMs, http: { oauth2 } })),
    prober.run(httpSpec(port, { timeoutMs, protocol: "script", host: "", port: 0 })),
  ];
  prober.close();
  for (const { error } of await Promise.all(running)) assert.equal(error, "unreachable");
  assert.equal((await prober.run(httpSpec(port))).error, "unreachable");
});

test("a request that would be two is not sent", async (t) => {
  let connections = 0;
  const port = await listenFor(
    t,
    createServer(() => connections++),
  );
  const prober = proberFor(t, { policy: () => ({ ...STRICT, allowInsecureAuthenticatedProbes: true }) });
  const specs: readonly Partial<ProbeSpec>[] = [
    { path: "/ HTTP/1.1\r\nHost: x" },
    { http: { host: "a\r\nb: c" } },
    { http: { headers: { "x-key": "a\r\nb: c" } } },
    { http: { headers: { "x-key\r\nb": "c" } } },
    { http: { headers: { "x-key": "\u00e9\u{1f600}" } } },
  ];
  for (const spec of specs) assert.equal((await prober.run(httpSpec(port, spec))).error, "protocol");
  assert.equal(connections, 0);
});

const script = httpSpec(0, { protocol: "script", host: "", script: { command: "check" } });
const failed: ProbeOutcome = { error: "script", detail: "ended with 1", latencyUs: 9 };
const runners: readonly (readonly [
  string,
  ((spec: ProbeSpec) => Promise<ProbeOutcome>) | undefined,
  ProbeOutcome["error"],
])[] = [
  ["succeeds", () => Promise.resolve({ latencyUs: 7 }), undefined],
  ["says that the script failed", () => Promise.resolve(failed), "script"],
  ["cannot be reached", () => Promise.reject(new Error("ENOENT")), "runner"],
  ["throws", () => assert.fail("a fault"), "unreachable"],
  ["is not there", undefined, "runner"],
];
for (const [what, runScript, error] of runners) {
  test(`a script's runner that ${what}: ${error ?? "success"}`, async (t) => {
    const prober = proberFor(t, runScript === undefined ? {} : { runScript });
    assert.equal((await prober.run(script)).error, error);
  });
}

test("a script's runner that never answers has the script's time and a second", async (t) => {
  const prober = proberFor(t, { runScript: () => PENDING });
  const outcome = await prober.run({ ...script, timeoutMs: 50 });
  assert.equal(outcome.error, "runner");
  assert.ok(outcome.latencyUs >= 1_000_000, `${outcome.latencyUs} us`);
});

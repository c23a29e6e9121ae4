import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import test, { type TestContext } from "node:test";
import { httpSpec, listenFor, proberFor } from "../../tests/support/probe-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import type { ProbeError, ProbeSpec } from "./probe.ts";

/** Of those that never end by themselves; time enough to connect on a machine that is busy. */
const SHORT_MS = 1_500;
/** How late a timer may fire on such a machine. */
const SLACK_MS = 20_000;

type Behaviour = {
  readonly on: (socket: Socket) => void;
  readonly error?: ProbeError;
  readonly detail?: RegExp;
  readonly spec?: Partial<ProbeSpec>;
};

const say =
  (text: string) =>
  (socket: Socket): void => {
    socket.write(text);
  };
const sayAndEnd =
  (text: string) =>
  (socket: Socket): void => {
    socket.end(text);
  };
const repeat =
  (text: string, first = "") =>
  (socket: Socket): void => {
    // Large pieces: the server is in the process of the probes, and is not to keep it busy.
    const piece = text.repeat(Math.ceil(16_384 / text.length));
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece, "latin1"));
    };
    socket.write(first);
    socket.on("drain", more);
    more();
  };
const drip =
  (text: string) =>
  (socket: Socket): void => {
    let at = 0;
    const timer = setInterval(() => socket.write(text.charAt(at++ % text.length)), 100);
    socket.on("close", () => clearInterval(timer));
  };
const once200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const short = { timeoutMs: SHORT_MS };

const behaviours: Readonly<Record<string, Behaviour>> = {
  "answers 200": { on: say(once200) },
  "answers 200 and ends": { on: sayAndEnd(once200) },
  "answers 204 in HTTP/1.0": { on: sayAndEnd("HTTP/1.0 204 No Content\r\n\r\n") },
  "answers 200 with a body without end": { on: repeat("x".repeat(10_000), "HTTP/1.1 200 OK\r\n\r\n") },
  "answers 100 and then 200": { on: say(`HTTP/1.1 100 Continue\r\n\r\n${once200}`) },
  "answers 500": { on: say("HTTP/1.1 500 No\r\n\r\n"), error: "status", detail: /^answered 500$/ },
  "answers 302": {
    on: say("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/secret\r\n\r\n"),
    error: "status",
    detail: /^answered 302; redirects are not followed$/,
  },
  "answers 302, as expected": {
    on: say("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"),
    spec: { http: { expected_status: [301, 302] } },
  },
  "answers 200, where 204 is expected": {
    on: say(once200),
    spec: { http: { expected_status: [204] } },
    error: "status",
  },
  "accepts and never answers": { on: () => {}, spec: short, error: "read_timeout" },
  "stops within the head": { on: say("HTTP/1.1 200 OK\r\nA: "), spec: short, error: "read_timeout" },
  "answers a byte at a time, too slowly": { on: drip("HTTP/1.1 200 OK\r\n"), spec: short, error: "read_timeout" },
  "sends headers without end": { on: repeat("A: b\r\n", "HTTP/1.1 200 OK\r\n"), error: "protocol", detail: /headers/ },
  "sends one line without end": { on: repeat("HTTP/1.1 200 "), error: "protocol" },
  "sends 100 without end": { on: repeat("HTTP/1.1 100 Continue\r\n\r\n"), error: "protocol", detail: /interim/ },
  "sends garbage without end": { on: repeat("\0\xff\r\n"), error: "protocol", detail: /not HTTP/ },
  "greets as another protocol": { on: say("220 mail.example ESMTP\r\n"), error: "protocol" },
  "speaks TLS only": { on: say("\x15\x03\x01\x00\x02\x02\x46"), error: "protocol" },
  "ends at once": { on: (socket) => socket.end(), error: "reset" },
  "ends within the head": { on: sayAndEnd("HTTP/1.1 200 OK\r\n"), error: "reset" },
  "resets at once": { on: (socket) => socket.resetAndDestroy(), error: "reset" },
  "resets after the request": { on: (socket) => socket.once("data", () => socket.resetAndDestroy()), error: "reset" },
  "resets within the head": {
    on: (socket) => socket.once("data", () => socket.write("HTTP/1.1 200", () => socket.resetAndDestroy())),
    error: "reset",
  },
};

for (const [what, { on, error, detail, spec }] of Object.entries(behaviours)) {
  test(`a server that ${what}: ${error ?? "success"}`, async (t) => {
    const server = createServer((socket) => {
      on(socket);
      // Reads to the end, and so hears of it.
      socket.resume();
    });
    const port = await listenFor(t, server);
    const wanted = httpSpec(port, spec);
    const startMs = performance.now();
    const outcome = await proberFor(t).run(wanted);
    const tookMs = performance.now() - startMs;
    assert.equal(outcome.error, error, outcome.detail ?? "");
    assert.match(outcome.detail ?? "", detail ?? /^[ -~]{0,200}$/);
    assert.ok(tookMs < wanted.timeoutMs + SLACK_MS, `took ${tookMs} ms`);
    assert.ok(outcome.latencyUs > 0 && outcome.latencyUs <= (tookMs + 1) * 1_000, `${outcome.latencyUs} us`);
    if (error === "read_timeout") assert.ok(tookMs >= SHORT_MS / 2, `took ${tookMs} ms`);
    const isGone = async () => (await connectionsOf(server)) === 0;
    await waitFor("the connection's end", 5_000, isGone);
  });
}

function connectionsOf(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

test("probes of a server that answers do not wait for those of servers that do not", async (t) => {
  const prober = proberFor(t);
  const bad = Object.values(behaviours).filter(({ error }) => error !== undefined);
  const badPorts = await Promise.all(bad.map(({ on }) => listenFor(t, createServer(on))));
  const goodPort = await listenFor(t, createServer(say(once200)));
  let hanging = 0;
  for (const port of [...badPorts, ...badPorts, ...badPorts]) {
    hanging++;
    void prober.run(httpSpec(port, { timeoutMs: 60_000 })).then(() => hanging--);
  }
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => prober.run(httpSpec(goodPort))));
  assert.deepEqual(
    outcomes.filter(({ error }) => error !== undefined),
    [],
  );
  assert.ok(hanging >= 9, `${hanging} still hang`);
});

test("the request says what the spec says", async (t) => {
  const seen: object[] = [];
  const server = createHttpServer((request, response) => {
    seen.push({ method: request.method, url: request.url, ...request.headers });
    response.end();
  });
  const port = await listenFor(t, server);
  const policy = () => ({ allowInsecureAuthenticatedProbes: true, managedIdentityHosts: [] });
  const prober = proberFor(t, { policy });
  await prober.run(httpSpec(port));
  await prober.run(
    httpSpec(port, { path: "/healthz?full=1", http: { host: "App.Example.", path: "/healthz?full=1" } }),
  );
  await prober.run(httpSpec(port, { http: { path: "/own", headers: { "user-agent": "mine", "X-Key": "a b" } } }));
  const own = { method: "GET", connection: "close", accept: "*/*" };
  assert.deepEqual(seen, [
    { ...own, url: "/", host: `127.0.0.1:${port}`, "user-agent": "signpost-probe" },
    { ...own, url: "/healthz?full=1", host: `app.example:${port}`, "user-agent": "signpost-probe" },
    { ...own, url: "/own", host: `127.0.0.1:${port}`, "user-agent": "mine", "x-key": "a b" },
  ]);
});

test("over IPv6, the host stands in brackets", async (t) => {
  const hosts: (string | undefined)[] = [];
  const server = createHttpServer((request, response) => {
    hosts.push(request.headers.host);
    response.end();
  });
  const port = await listenFor(t, server, "::1");
  const outcome = await proberFor(t).run(httpSpec(port, { host: "::1" }));
  assert.equal(outcome.error, undefined);
  assert.deepEqual(hosts, [`[::1]:${port}`]);
});

test("tcp: a connection is success, none is refused", async (t) => {
  const server = createServer(() => {});
  const port = await listenFor(t, server);
  const prober = proberFor(t);
  const spec = httpSpec(port, { protocol: "tcp" });
  const { latencyUs, ...success } = await prober.run(spec);
  assert.deepEqual(success, {});
  assert.ok(latencyUs > 0);
  server.close();
  await once(server, "close");
  assert.equal((await prober.run(spec)).error, "refused");
  assert.equal((await prober.run(httpSpec(port))).error, "refused");
});

test("a port that cannot be is a failure and no exception, then and later", async (t) => {
  const prober = proberFor(t);
  assert.equal((await prober.run(httpSpec(70_000, { timeoutMs: 20 }))).error, "unreachable");
  // Past the time of the first.
  const port = await listenFor(t, createServer());
  assert.equal((await prober.run(httpSpec(port, { timeoutMs: SHORT_MS }))).error, "read_timeout");
});

test("a host that takes no connection: connect_timeout", async (t) => {
  const { port } = await deafServer(t);
  for (const protocol of ["tcp", "http", "https"] as const) {
    const outcome = await proberFor(t).run(httpSpec(port, { protocol, timeoutMs: SHORT_MS }));
    assert.equal(outcome.error, "connect_timeout", protocol);
    assert.ok(outcome.latencyUs >= (SHORT_MS / 2) * 1_000, `${outcome.latencyUs} us`);
  }
});

/** A process that listens and was stopped: once its queue is full, the kernel answers nobody. */
async function deafServer(t: TestContext): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const program = `require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, function () {
    process.stdout.write(this.address().port + "\\n");
  });`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [line] = await once(child.stdout, "data");
  const port = Number(line);
  child.kill("SIGSTOP");
  const fillers: Socket[] = [];
  t.after(() => {
    for (const filler of fillers) filler.destroy();
  });
  await waitFor("a full queue", 10_000, async () => {
    const filler = connect({ host: "127.0.0.1", port }).on("error", () => {});
    fillers.push(filler);
    // Over loopback a connection comes about at once or not at all.
    const isConnected = await Promise.race([
      once(filler, "connect").then(() => true),
      once(AbortSignal.timeout(SHORT_MS), "abort").then(() => false),
    ]);
    return !isConnected;
  });
  return { port, child };
}

/** Backends that misbehave in every way: each is withheld with its own reason, and nobody else is held up by it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { makeCertificate, type TestCertificate } from "../support/certificates.ts";
import { freePort } from "../support/ports.ts";
import { waitFor } from "../support/wait.ts";
import { type Steering, sharedSteering, valuesOf, WAIT_MS } from "./steer-world.ts";

const steering = sharedSteering();

type Behaviour = (socket: Socket) => void;
type Bad = { readonly on?: Behaviour; readonly tls?: TestCertificate; readonly error?: string };

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Says something to every request. */
function says(text: string): Behaviour {
  return (socket) => void socket.once("data", () => socket.end(text));
}

/** Says it again and again, as fast as it is taken. */
function floods(head: string, piece: string): Behaviour {
  return (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.once("data", () => {
      socket.write(head);
      socket.on("drain", more);
      more();
    });
  };
}

function drips(text: string): Behaviour {
  return (socket) => {
    let at = 0;
    const timer = setInterval(() => void socket.write(text.charAt(at++ % text.length)), 1_000);
    socket.once("data", () => {}).on("close", () => clearInterval(timer));
  };
}

const silent: Behaviour = (socket) => void socket.on("data", () => {});

const HTTP: Readonly<Record<string, Bad>> = {
  "127.0.6.1": { on: says(OK) },
  "127.0.6.2": { on: silent, error: "read_timeout" },
  "127.0.6.3": { on: drips(OK), error: "read_timeout" },
  "127.0.6.4": { on: floods("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n"), error: "protocol" },
  "127.0.6.5": { on: (socket) => void socket.once("data", () => socket.resetAndDestroy()), error: "reset" },
  "127.0.6.6": { on: says("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"), error: "status" },
  "127.0.6.7": { on: says("HTTP/1.1 302 Found\r\nLocation: http://127.0.6.1/\r\n\r\n"), error: "status" },
  "127.0.6.8": { on: says("220 smtp.example ESMTP\r\n"), error: "protocol" },
  // Nobody listens there.
  "127.0.6.9": { error: "refused" },
  // Its status is all that counts.
  "127.0.6.10": { on: floods("HTTP/1.1 200 OK\r\n\r\n", "and more ".repeat(1_000)) },
};

const DAY_MS = 86_400_000;
const authority = makeCertificate({ commonName: "authority", isAuthority: true });
const leaf = (changes: object) =>
  makeCertificate({ commonName: "leaf", names: ["app.example"], issuer: authority, ...changes });

const HTTPS: Readonly<Record<string, Bad>> = {
  "127.0.7.1": { on: says(OK), tls: leaf({}) },
  "127.0.7.2": {
    on: says(OK),
    tls: leaf({ fromMs: Date.now() - 9 * DAY_MS, toMs: Date.now() - DAY_MS }),
    error: "tls_expired",
  },
  "127.0.7.3": { on: says(OK), tls: leaf({ names: ["other.example"] }), error: "tls_name" },
  "127.0.7.4": {
    on: says(OK),
    tls: makeCertificate({ commonName: "app.example", names: ["app.example"] }),
    error: "tls_untrusted",
  },
  // Accepts, and never agrees on TLS.
  "127.0.7.5": { on: silent, error: "read_timeout" },
  "127.0.7.6": { on: says(OK), error: "tls" },
};

/** Starts all that listen, on one port. */
async function startBad(stack: AsyncDisposableStack, backends: Readonly<Record<string, Bad>>): Promise<number> {
  const port = await freePort();
  for (const [host, { on, tls }] of Object.entries(backends)) {
    if (on === undefined) continue;
    const sockets = new Set<Socket>();
    const serve = (socket: Socket) => on(socket.on("error", () => {}));
    const server: Server =
      tls === undefined ? createServer(serve) : createTlsServer(tls, serve).on("tlsClientError", () => {});
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    });
    server.listen({ port, host, exclusive: true });
    await once(server, "listening");
    stack.defer(async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
  }
  return port;
}

async function gated(world: Steering, name: string, backends: Readonly<Record<string, Bad>>, template: object) {
  const values = valuesOf(...Object.keys(backends));
  const timing = { interval_seconds: 2, timeout_seconds: 1 };
  return await world.record({ name, type: "A", values, health_check_template: { ...timing, ...template } });
}

/** Waits until every value is judged, and checks what is told of each and what is answered. */
async function assertJudged(world: Steering, name: string, id: string, backends: Readonly<Record<string, Bad>>) {
  const items = await waitFor(`${name} is judged`, WAIT_MS, async () => {
    const found = await world.health(`record_id=${id}`);
    // One probe of many may meet a machine that has no time for it, so the last one counts.
    return (
      found.every(({ value, state, probes }) => {
        const error = backends[value]?.error;
        return state === (error === undefined ? "healthy" : "unhealthy") && probes.at(-1).error === error;
      }) && found
    );
  }).catch(async (error) => assert.fail(`${String(error)}: ${JSON.stringify(await world.health(), null, 1)}`));
  for (const { value, probes } of items) {
    // A second is the timeout; the rest is for a machine that does other things too.
    for (const { latency_ms, detail } of probes) assert.ok(latency_ms < 6_000, `${value}: ${latency_ms} ms, ${detail}`);
  }
  const good = Object.keys(backends).filter((value) => backends[value]?.error === undefined);
  assert.deepEqual((await world.ask(name)).toSorted(), good.toSorted());
  return items;
}

test("backends that hang, drip, flood, reset and refuse each have their class, and the good one's probes are not late", async () => {
  await using stack = new AsyncDisposableStack();
  const port = await startBad(stack, HTTP);
  await using world = await steering();
  const id = await gated(world, "http", HTTP, { protocol: "http", port });
  const items = await assertJudged(world, "http", id, HTTP);
  assert.ok(items.every(({ stale }) => stale === false));
  const good = await waitFor("five probes of the good one", WAIT_MS, async () => {
    const item = (await world.health(`record_id=${id}`)).find(({ value }) => value === "127.0.6.1");
    return item.probes.length >= 5 && item;
  });
  const times = good.probes.map(({ at }: { readonly at: string }) => Date.parse(at));
  // From the second on they keep their moments: two seconds apart.
  for (let at = 2; at < times.length; at++) assert.ok(times[at] - times[at - 1] < 4_000, `${times}`);
  const metrics = await (await world.node.get("/metrics")).text();
  for (const error of ["read_timeout", "protocol", "reset", "status", "refused"]) {
    const count = Number(new RegExp(`svc_health_probe_failures_total\\{error="${error}"\\} (\\d+)`).exec(metrics)?.[1]);
    assert.ok(count >= 3, `${error}: ${count}`);
  }
});

test("certificates that are expired, of another name or of nobody we trust each have their class", async () => {
  await using stack = new AsyncDisposableStack();
  const port = await startBad(stack, HTTPS);
  await using world = await steering();
  const http_config = { host: "app.example", ca_pem: authority.cert };
  const id = await gated(world, "https", HTTPS, { protocol: "https", port, http_config });
  await assertJudged(world, "https", id, HTTPS);
  // Without the private authority nobody is trusted, the good one neither; all dead is all answered.
  const strict = await gated(world, "strict", HTTPS, { protocol: "https", port, http_config: { host: "app.example" } });
  const items = await waitFor("all are unhealthy", WAIT_MS, async () => {
    const found = await world.health(`record_id=${strict}`);
    return found.every(({ state }) => state === "unhealthy") && found;
  });
  assert.equal(items.find(({ value }) => value === "127.0.7.1").probes.at(-1).error, "tls_untrusted");
  assert.equal((await world.ask("strict")).length, Object.keys(HTTPS).length);
});

test("a name that does not exist cannot be resolved, and says so", async () => {
  await using world = await steering();
  const id = await world.record({
    name: "alias",
    type: "ALIAS",
    values: valuesOf("nobody.steer.test."),
    health_check_template: { protocol: "tcp", port: 80, interval_seconds: 1, timeout_seconds: 1 },
  });
  const [item] = await waitFor("it is judged", WAIT_MS, async () => {
    const items = await world.health(`record_id=${id}`);
    return items[0].state === "unhealthy" && items;
  });
  assert.equal(item.probes.at(-1).error, "resolve");
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import { createLineCutter, lineOf, type RunRequest, requestFromLine } from "../base/script-protocol.ts";
import type { ProbeSpec } from "./probe.ts";
import { createScriptClient, type ScriptClient } from "./script-client.ts";

const HELLO = lineOf({ kind: "hello", version: 1 });
/** Longer than any machine takes for a message to itself. */
const LONG_MS = 20_000;

function spec(timeoutMs = LONG_MS, script: ProbeSpec["script"] = { command: "/usr/bin/true" }): ProbeSpec {
  const rest = { slot: 0, protocol: "script", host: "", port: 0, intervalMs: timeoutMs, failureThreshold: 3 } as const;
  return { key: "chk_1", ...rest, timeoutMs, ...(script === undefined ? {} : { script }) };
}

type World = {
  readonly client: ScriptClient;
  /** Starts a runner of the test's making at the client's path. */
  readonly listen: (onConnection: (socket: Socket) => void) => Promise<Server>;
  /** Ends the runner and its connections. */
  readonly stop: (server: Server) => Promise<void>;
};

function openWorld(context: TestContext): World {
  const directory = mkdtempSync(join(tmpdir(), "signpost-client-"));
  const socketPath = join(directory, "socket");
  const client = createScriptClient({ socketPath, now: () => performance.now() });
  const sockets = new Set<Socket>();
  const servers = new Set<Server>();
  const stop = async (server: Server) => {
    servers.delete(server);
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    await new Promise((resolve) => server.close(resolve));
  };
  context.after(async () => {
    client.close();
    for (const server of servers) await stop(server);
    rmSync(directory, { recursive: true, force: true });
  });
  const listen = (onConnection: (socket: Socket) => void) =>
    new Promise<Server>((resolve) => {
      const server = createServer((socket) => {
        sockets.add(socket);
        socket.on("error", () => {});
        onConnection(socket);
      });
      servers.add(server);
      server.listen(socketPath, () => resolve(server));
    });
  return { client, listen, stop };
}

/** A runner that says hello and gives each request to `answer`. */
function answering(answer: (request: RunRequest, socket: Socket) => void) {
  return (socket: Socket) => {
    socket.write(HELLO);
    const take = createLineCutter(100_000, (line) => {
      const request = requestFromLine(line);
      assert.ok(request, line);
      answer(request, socket);
    });
    socket.on("data", take);
  };
}

test("outcomes come back to those who asked, in any order", async (context) => {
  const { client, listen } = openWorld(context);
  const asked: RunRequest[] = [];
  await listen(
    answering((request, socket) => {
      asked.push(request);
      if (asked.length < 3) return;
      for (const { id, command } of asked.toReversed()) {
        const isGood = command === "/b";
        const outcome = isGood ? { latencyUs: 7 } : ({ latencyUs: 8, error: "script", detail: command } as const);
        socket.write(lineOf({ kind: "done", id, outcome }));
      }
    }),
  );
  const outcomes = ["/a", "/b", "/c"].map((command) => client.run(spec(LONG_MS, { command, args: ["x"] })));
  assert.deepEqual(await Promise.all(outcomes), [
    { latencyUs: 8, error: "script", detail: "/a" },
    { latencyUs: 7 },
    { latencyUs: 8, error: "script", detail: "/c" },
  ]);
  assert.deepEqual(asked[0]?.args, ["x"]);
});

test("the runner has less time than the check", async (context) => {
  const { client, listen } = openWorld(context);
  const times: number[] = [];
  await listen(
    answering(({ id, timeoutMs }, socket) => {
      times.push(timeoutMs);
      socket.write(lineOf({ kind: "done", id, outcome: { latencyUs: 1 } }));
    }),
  );
  await client.run(spec(60_000));
  await client.run(spec(30_000));
  const [long = 0, short = 0] = times;
  assert.ok(long > 30_000 && long <= 59_750, `${long}`);
  assert.ok(short > 10_000 && short <= 29_750, `${short}`);
});

test("no runner at all", async (context) => {
  const { client } = openWorld(context);
  const outcome = await client.run(spec());
  assert.equal(outcome.error, "runner");
  assert.match(outcome.detail ?? "", /not running/);
});

test("a check without a script fails", async (context) => {
  const { client } = openWorld(context);
  const { script: _, ...rest } = spec();
  assert.equal((await client.run(rest)).error, "runner");
});

for (const [what, misbehave, expected] of [
  ["hangs up", (socket: Socket) => socket.end(), /ended the connection/],
  ["talks nonsense", (socket: Socket) => socket.write("good morning\n"), /no answer/],
  ["speaks another version", (socket: Socket) => socket.write('{"kind":"hello","version":2}\n'), /version 2/],
  ["says too much", (socket: Socket) => socket.write("x".repeat(100_000)), /too long/],
  ["talks nonsense later", (socket: Socket) => socket.write(`${HELLO}{"kind":"done"}\n`), /no answer/],
] as const) {
  test(`a runner that ${what} fails the check`, async (context) => {
    const { client, listen } = openWorld(context);
    await listen(misbehave);
    const outcome = await client.run(spec());
    assert.equal(outcome.error, "runner");
    assert.match(outcome.detail ?? "", expected);
  });
}

for (const [what, behave] of [
  ["says nothing at all", () => {}],
  ["says hello and no more", (socket: Socket) => socket.write(HELLO)],
  [
    "answers what nobody asked",
    answering((_, socket) => socket.write(lineOf({ kind: "done", id: 99, outcome: { latencyUs: 1 } }))),
  ],
] as const) {
  test(`a runner that ${what} fails the check when its time is over`, async (context) => {
    const { client, listen } = openWorld(context);
    await listen(behave);
    const outcome = await client.run(spec(300));
    assert.equal(outcome.error, "runner");
    assert.match(outcome.detail ?? "", /no answer in time/);
  });
}

test("a runner that dies fails what it had, and its successor is found", async (context) => {
  const { client, listen, stop } = openWorld(context);
  const asked = Promise.withResolvers<void>();
  const first = await listen(answering(() => asked.resolve()));
  const outcome = client.run(spec());
  await asked.promise;
  await stop(first);
  assert.equal((await outcome).error, "runner");
  await listen(answering(({ id }, socket) => socket.write(lineOf({ kind: "done", id, outcome: { latencyUs: 3 } }))));
  const later = await waitFor("the successor's outcome", LONG_MS, async () => {
    const next = await client.run(spec());
    return next.error === undefined && next;
  });
  assert.deepEqual(later, { latencyUs: 3 });
});

test("a stop of the service ends what is under way", async (context) => {
  const { client, listen } = openWorld(context);
  const asked = Promise.withResolvers<void>();
  await listen(answering(() => asked.resolve()));
  const outcome = client.run(spec());
  await asked.promise;
  client.close();
  assert.equal((await outcome).error, "runner");
});

test("runs that are never answered are not kept", async (context) => {
  const { client, listen } = openWorld(context);
  await listen((socket) => {
    socket.write(HELLO);
    socket.resume();
  });
  for (let round = 0; round < 3; round++) {
    const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => client.run(spec(100))));
    assert.ok(outcomes.every((one) => one.error === "runner" && /in time/.test(one.detail ?? "")));
  }
});

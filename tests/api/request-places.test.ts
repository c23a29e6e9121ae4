/** Places for requests under way: one address cannot take those of all others. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { request } from "node:https";
import test from "node:test";
import Type from "typebox";
import { REQUESTS_PER_ADDRESS_MAX, STREAMS_MAX } from "../../src/api/limits.ts";
import { route } from "../../src/api/route.ts";
import { startApi } from "../support/api.ts";
import { waitFor } from "../support/wait.ts";

test("a client that reads no answers leaves room for other addresses", async () => {
  const big = route({
    method: "GET",
    path: "/big",
    tag: "t",
    summary: "Answers more than a window holds",
    access: "public",
    response: Type.Unknown(),
    handle: () => ({ body: { text: "x".repeat(20_000) } }),
  });
  await using api = await startApi(() => [big]);
  const sessions = Array.from({ length: REQUESTS_PER_ADDRESS_MAX / STREAMS_MAX + 1 }, () =>
    connect(api.server.url, { rejectUnauthorized: false, settings: { initialWindowSize: 0 } }),
  );
  const statuses: (number | undefined)[] = [];
  try {
    await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
    for (const session of sessions.slice(0, -1)) {
      for (let stream = 0; stream < STREAMS_MAX; stream++) {
        const held = session.request({ ":path": "/api/v1/big" });
        held.on("error", () => undefined);
        held.on("response", (headers: IncomingHttpHeaders) => statuses.push(Number(headers[":status"])));
      }
    }
    await waitFor("all places are taken", 10_000, () => statuses.length === REQUESTS_PER_ADDRESS_MAX);
    assert.ok(statuses.every((status) => status === 200));

    const late = sessions.at(-1)?.request({ ":path": "/api/v1/big" });
    assert.ok(late !== undefined);
    late.on("error", () => undefined);
    const [headers] = await once(late, "response");
    assert.equal(headers[":status"], 503);

    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const options = { rejectUnauthorized: false, localAddress: "127.0.0.2" };
    const other = request(`${api.server.url}/api/v1/big`, options, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    other.on("error", reject).end();
    assert.equal(await promise, 200);
  } finally {
    for (const session of sessions) session.destroy();
  }
});

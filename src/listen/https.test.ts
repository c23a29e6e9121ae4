import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { Agent, request as httpsRequest } from "node:https";
import { after, test } from "node:test";
import { type HttpsLab, openHttpsLab } from "../../tests/support/https-lab.ts";
import { ACTION, testQuery } from "../../tests/support/listen/fake-answerer.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER } from "../image/counters.ts";
import { recordQuery } from "./handover-record.ts";
import { DOH_MEDIA_TYPE } from "./https-request.ts";

const FILL = new Array<number>(20).fill(0);
const LOCALHOST = [127, 0, 0, 1];

type Answer = { readonly status: number; readonly headers: Readonly<Record<string, unknown>>; readonly body: Buffer };
type Ask = (headers: OutgoingHttpHeaders, body?: Buffer) => Promise<Answer>;

function overHttp2(session: ClientHttp2Session): Ask {
  return (headers, body) =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ":path": "/dns-query", ...headers }, { endStream: body === undefined });
      const chunks: Buffer[] = [];
      let given: Readonly<Record<string, unknown>> = {};
      stream.on("response", (fields) => {
        given = fields;
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("close", () => {
        const status = Number(given[":status"] ?? 0);
        if (status === 0) reject(new Error(`stream ended with ${stream.rstCode}`));
        else resolve({ status, headers: given, body: Buffer.concat(chunks) });
      });
      if (body !== undefined) stream.end(body);
    });
}

function overHttp1(port: number, agent: Agent): Ask {
  return ({ ":path": path = "/dns-query", ":method": method = "GET", ...headers }, body) =>
    new Promise((resolve, reject) => {
      const options = { port, agent, path: String(path), method: String(method), headers, rejectUnauthorized: false };
      const request = httpsRequest(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        );
      });
      request.on("error", reject);
      request.end(body);
    });
}

const lab: HttpsLab = await openHttpsLab();
const session = connect(`https://127.0.0.1:${lab.port}`, { rejectUnauthorized: false });
const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
after(async () => {
  session.close();
  agent.destroy();
  await lab[Symbol.asyncDispose]();
});

const VERSIONS: readonly (readonly [string, Ask])[] = [
  ["HTTP/2", overHttp2(session)],
  ["HTTP/1.1", overHttp1(lab.port, agent)],
];

const post = (message: Buffer): [OutgoingHttpHeaders, Buffer] => [
  { ":method": "POST", "content-type": DOH_MEDIA_TYPE },
  message,
];
const get = (message: Buffer): OutgoingHttpHeaders => ({ ":path": `/dns-query?dns=${message.toString("base64url")}` });

for (const [version, ask] of VERSIONS) {
  test(`${version}: GET and POST are answered, with the client's address known`, async () => {
    const query = testQuery(1, ACTION.ECHO, ...FILL);
    for (const { status, headers, body } of [await ask(get(query)), await ask(...post(query))]) {
      assert.equal(status, 200);
      assert.equal(headers["content-type"], DOH_MEDIA_TYPE);
      assert.equal(headers["content-length"], String(body.length));
      assert.equal(headers["cache-control"], "max-age=0");
      assert.match(String(headers.date), /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/);
      assert.equal(headers.server, undefined);
      assert.deepEqual([...body], [...query, ...LOCALHOST]);
    }
  });

  test(`${version}: what is for this client may not be kept for others`, async () => {
    const { headers } = await ask(get(testQuery(1, ACTION.OWN, ...FILL)));
    assert.equal(headers["cache-control"], "private, max-age=0");
  });

  test(`${version}: what is no question has its status`, async () => {
    const query = testQuery(1, ACTION.ECHO, ...FILL);
    const status = async (...given: Parameters<Ask>) => (await ask(...given)).status;
    assert.equal(await status({ ":path": "/" }), 404);
    assert.equal(await status({}), 400);
    assert.equal(await status({ ":method": "POST", "content-type": "text/plain" }, query), 415);
    assert.equal(await status(...post(query.subarray(0, 11))), 400);
    assert.equal(await status(...post(Buffer.alloc(0))), 400);
    assert.equal(await status(get(testQuery(1, ACTION.SILENCE, ...FILL))), 400);
    assert.equal(await status(get(testQuery(1, ACTION.THROW, ...FILL))), 503);
    const { status: refused, headers } = await ask({ ":method": "DELETE" });
    assert.deepEqual([refused, headers.allow, headers["content-length"]], [405, "GET, POST", "0"]);
  });

  test(`${version}: a body of 65,535 bytes is a message, one that is longer is 413`, async () => {
    const longest = Buffer.alloc(65_535 - 4);
    longest.set(testQuery(1, ACTION.ECHO));
    assert.equal((await ask(...post(longest))).body.length, 65_535);
    assert.equal((await ask(...post(Buffer.alloc(65_536)))).status, 413);
    // Without its length in front, as HTTP/2 has it anyway.
    const chunked = version === "HTTP/2" ? {} : { "transfer-encoding": "chunked" };
    const { status } = await ask(
      { ":method": "POST", "content-type": DOH_MEDIA_TYPE, ...chunked },
      Buffer.alloc(70_000),
    );
    assert.equal(status, 413);
  });

  test(`${version}: what has to be resolved is waited for, and nobody waits with it`, async () => {
    const query = testQuery(7, ACTION.RESOLVE, ...FILL);
    const waiting = ask(...post(query));
    let record: Uint8Array | undefined;
    await waitFor("the query is handed over", 5_000, () => {
      [record] = lab.handedOver();
      return record !== undefined;
    });
    assert.ok(record);
    assert.deepEqual([...recordQuery(record)], [...query]);
    if (version === "HTTP/2") assert.equal((await ask(get(testQuery(8, ACTION.ECHO, ...FILL)))).status, 200);
    lab.reply(record, Buffer.alloc(30, 9));
    assert.deepEqual([...(await waiting).body], new Array<number>(30).fill(9));
  });

  test(`${version}: answers of every size arrive whole, many at once`, async () => {
    const sizes = [100, 16_383, 16_384, 16_385, 40_000, 65_535, 65_000, 65_001, 20_000, 60_000];
    const answers = await Promise.all(
      sizes.map((size) => ask(get(testQuery(1, ACTION.LONG, size >> 8, size & 255, ...FILL)))),
    );
    assert.deepEqual(
      answers.map(({ body }) => body.length),
      sizes,
    );
  });
}

test("hundreds of requests at once, more than may be open, each have their own answer", async () => {
  const [, ask] = VERSIONS[0]!;
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, id) => ask(...post(testQuery(id, ACTION.ECHO, ...FILL)))),
  );
  for (const [id, { body }] of answers.entries()) assert.equal(body.readUInt16BE(0), id);
});

test("a client whose windows are small has its answer piece by piece", async () => {
  const small = connect(`https://127.0.0.1:${lab.port}`, {
    rejectUnauthorized: false,
    settings: { initialWindowSize: 100 },
  });
  const [answer, other] = await Promise.all([
    overHttp2(small)(get(testQuery(1, ACTION.LONG, 0x20, 0x00, ...FILL))),
    overHttp2(small)(get(testQuery(2, ACTION.LONG, 0x10, 0x00, ...FILL))),
  ]);
  assert.equal(answer.body.length, 0x2000);
  assert.equal(other.body.length, 0x1000);
  small.close();
  await once(small, "close");
});

test("a request that is taken back is forgotten", async () => {
  const stream = session.request({ ":method": "POST", ":path": "/dns-query", "content-type": DOH_MEDIA_TYPE });
  stream.on("error", () => {});
  stream.end(testQuery(9, ACTION.RESOLVE, ...FILL));
  let record: Uint8Array | undefined;
  await waitFor("the query is handed over", 5_000, () => {
    [record] = lab.handedOver();
    return record !== undefined;
  });
  stream.close(8);
  await once(stream, "close");
  assert.ok(record);
  lab.reply(record, Buffer.alloc(30, 9));
  const [, ask] = VERSIONS[0]!;
  assert.equal((await ask(get(testQuery(8, ACTION.ECHO, ...FILL)))).status, 200);
});

test("requests are counted by version", () => {
  assert.ok(lab.counter(COUNTER.HTTP2_REQUESTS) > 500);
  assert.ok(lab.counter(COUNTER.HTTP1_REQUESTS) > 10);
});

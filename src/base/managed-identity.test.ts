import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { createManagedIdentity, tokenOf } from "./managed-identity.ts";

/** For a service that gives no whole answer, and for one that does, on a machine that does other things too. */
const [SHORT_MS, LONG_MS] = [200, 60_000];

async function service(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: { readonly url: URL; readonly metadata: string | undefined }[] = [];
  const server = createServer((request, response) => {
    const metadata = request.headers.metadata;
    seen.push({
      url: new URL(request.url ?? "", "http://metadata.example"),
      metadata: Array.isArray(metadata) ? metadata.join() : metadata,
    });
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { seen, metadataUrl: `http://127.0.0.1:${port}` };
}

const give = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

test("asks as the platform documents, once for each resource and identity", async (t) => {
  const nowMs = 1_700_000_000_000;
  const { seen, metadataUrl } = await service(t, (request, response) =>
    give(response, 200, {
      access_token: `of:${request.url}`,
      token_type: "Bearer",
      expires_on: String(nowMs / 1_000 + 3_600),
    }),
  );
  const identity = createManagedIdentity({ metadataUrl, now: () => nowMs });
  t.after(identity.close);
  const [plain, same, other] = await Promise.all([
    identity.tokenFor("https://vault.example/"),
    identity.tokenFor("https://vault.example/"),
    identity.tokenFor("https://vault.example/", "client&1"),
  ]);
  assert.equal(plain, same);
  assert.notEqual(plain, other);
  assert.equal(seen.length, 2);
  for (const { url, metadata } of seen) {
    assert.equal(metadata, "true");
    assert.equal(url.pathname, "/metadata/identity/oauth2/token");
    assert.equal(url.searchParams.get("api-version"), "2018-02-01");
    assert.equal(url.searchParams.get("resource"), "https://vault.example/");
  }
  assert.deepEqual(
    seen.map(({ url }) => url.searchParams.get("client_id")),
    [null, "client&1"],
  );
  identity.drop("https://vault.example/");
  await identity.tokenFor("https://vault.example/");
  assert.equal(seen.length, 3);
});

const failures: readonly (readonly [string, (response: ServerResponse) => void, RegExp])[] = [
  ["an error", (response) => give(response, 403, { error: "hush" }), /^the metadata service answered 403$/],
  [
    "a redirect",
    (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    /^the metadata service answered 302$/,
  ],
  ["no token", (response) => give(response, 200, { hello: 1 }), /has no usable token$/],
  [
    "a token that would begin another header",
    (response) => give(response, 200, { access_token: "a\r\nb: c" }),
    /has no usable token$/,
  ],
  ["no JSON", (response) => response.end("<html>"), /has no usable token$/],
  ["an endless answer", (response) => response.end(Buffer.alloc(1_000_000)), /above 65536 bytes/],
  ["half an answer", (response) => response.writeHead(200, { "content-length": "9" }).write("{"), /no answer within/],
  ["silence", () => {}, new RegExp(`no answer within ${SHORT_MS} ms`)],
  ["a reset", (response) => response.socket?.resetAndDestroy(), /ECONNRESET|hang up/],
];
for (const [what, answer, message] of failures) {
  test(`${what} is a failure that says so`, async (t) => {
    const { metadataUrl } = await service(t, (_request, response) => answer(response));
    const identity = createManagedIdentity({
      metadataUrl,
      now: Date.now,
      timeoutMs: message.source.includes("no answer") ? SHORT_MS : LONG_MS,
    });
    t.after(identity.close);
    await assert.rejects(identity.tokenFor("r"), { message });
  });
}

test("closing ends what is being fetched", async (t) => {
  const { metadataUrl } = await service(t, () => {});
  const identity = createManagedIdentity({ metadataUrl, now: Date.now });
  const waiting = assert.rejects(identity.tokenFor("r"));
  identity.close();
  await waiting;
});

const lives: readonly (readonly [object, number])[] = [
  [{ expires_in: 60 }, 60],
  [{ expires_in: "60" }, 60],
  [{ expires_in: 3_600, expires_on: 1_060 }, 60],
  [{ expires_on: "1060" }, 60],
  [{}, 300],
  [{ expires_in: -1 }, 5],
  [{ expires_in: 1e12 }, 86_400],
  [{ expires_in: "soon" }, 300],
];
for (const [fields, seconds] of lives) {
  test(`a token with ${JSON.stringify(fields)} lives ${seconds} s`, () => {
    const token = tokenOf(JSON.stringify({ access_token: "x", ...fields }), 1_000_000);
    assert.deepEqual(token, { text: "x", expiresMs: 1_000_000 + seconds * 1_000 });
  });
}

test("a token of another type than Bearer is none", () => {
  assert.equal(tokenOf('{"access_token":"x","token_type":"mac"}', 0), undefined);
  assert.equal(tokenOf('{"access_token":"x","token_type":7}', 0), undefined);
  assert.equal(tokenOf("null", 0), undefined);
});

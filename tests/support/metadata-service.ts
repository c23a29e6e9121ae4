/** A stand-in of a cloud platform's instance metadata service, as far as it hands out tokens of the managed identity. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type MetadataService = AsyncDisposable & {
  readonly url: string;
  /** Tokens handed out, in order, with what each is for. */
  readonly tokens: readonly { readonly token: string; readonly resource: string }[];
  /** From now on it answers with that status, or with tokens again. */
  readonly fail: (status: number | undefined) => void;
};

const API_VERSION = "2018-02-01";
const LIFE_SECONDS = 86_400;

export async function startMetadataService(): Promise<MetadataService> {
  const tokens: { readonly token: string; readonly resource: string }[] = [];
  let failing: number | undefined;
  const server = createServer((request, response) => {
    const { method, headers } = request;
    const url = new URL(request.url ?? "/", "http://metadata.test");
    const say = (status: number, body: object) =>
      response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
    if (url.pathname !== "/metadata/identity/oauth2/token") return say(404, { error: "not_found" });
    if (method !== "GET") return say(405, { error: "method_not_allowed" });
    const resource = url.searchParams.get("resource");
    // What keeps pages and forwarded requests from fetching tokens.
    if (headers.metadata !== "true" || headers["x-forwarded-for"] !== undefined)
      return say(400, { error: "bad_request" });
    if (url.searchParams.get("api-version") !== API_VERSION || resource === null) {
      return say(400, { error: "invalid_request" });
    }
    if (failing !== undefined)
      return say(failing, { error: "invalid_request", error_description: "Identity not found" });
    const token = `planted-token-${tokens.length + 1}`;
    tokens.push({ token, resource });
    say(200, {
      access_token: token,
      client_id: "00000000-0000-4000-8000-000000000001",
      expires_in: String(LIFE_SECONDS),
      expires_on: String(Math.floor(Date.now() / 1_000) + LIFE_SECONDS),
      not_before: String(Math.floor(Date.now() / 1_000)),
      resource,
      token_type: "Bearer",
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    tokens,
    fail: (status) => {
      failing = status;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

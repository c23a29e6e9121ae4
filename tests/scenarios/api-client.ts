/** A client of a node's API, signed in as a user. */
import { Agent, fetch } from "undici";
import { ADMIN_PASSWORD } from "./running-node.ts";

export type ApiAnswer = {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came back.
  readonly body: any;
};

export type ApiClient = AsyncDisposable & {
  /** Asks `path` below /api/v1. Rejects where the connection breaks. */
  readonly ask: (method: string, path: string, json?: unknown) => Promise<ApiAnswer>;
};

/** The certificate is self-made: what is tested is the node, and it is on this machine. `http`: what is spoken at most. */
export async function signIn(
  api: string,
  password = ADMIN_PASSWORD,
  username = "admin",
  http: "2" | "1.1" = "2",
): Promise<ApiClient> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, allowH2: http === "2" });
  let token: string | undefined;
  const ask = async (method: string, path: string, json?: unknown): Promise<ApiAnswer> => {
    const response = await fetch(`${api}/api/v1${path}`, {
      method,
      dispatcher,
      headers: {
        "x-svc-csrf": "1",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  const { status, body } = await ask("POST", "/auth/login", { username, password });
  if (status !== 200) {
    await dispatcher.destroy();
    throw new Error(`signing in as ${username}: ${status} ${body?.detail}`);
  }
  token = body.access_token;
  return { ask, [Symbol.asyncDispose]: () => dispatcher.destroy() };
}

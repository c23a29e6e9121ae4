/** An HTTP client that outlives the node it speaks to: the address may change, and a broken connection is an answer. */
import { Agent, fetch } from "undici";

export type CrashAnswer = {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came back.
  readonly body: any;
};

export type CrashRequest = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below /api/v1. */
  readonly path: string;
  readonly json?: unknown;
  readonly text?: { readonly type: string; readonly body: string };
  readonly requestId?: string;
};

export type CrashClient = AsyncDisposable & {
  /** undefined: the connection broke, and nobody knows what became of the request. */
  readonly ask: (request: CrashRequest) => Promise<CrashAnswer | undefined>;
  /** Lines of a streamed answer, parsed. */
  readonly lines: (path: string) => Promise<unknown[]>;
  readonly signIn: (username: string, password: string) => Promise<void>;
};

/** `base` gives the node's address as it is now. The certificate is self-made, and what is tested is not TLS. */
export function createCrashClient(base: () => string, allowH2: boolean): CrashClient {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, allowH2 });
  let token: string | undefined;
  const send = async ({ method, path, json, text, requestId }: CrashRequest) => {
    const body = text?.body ?? (json === undefined ? undefined : JSON.stringify(json));
    const response = await fetch(`${base()}/api/v1${path}`, {
      method,
      dispatcher,
      headers: {
        "x-svc-csrf": "1",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(requestId === undefined ? {} : { "x-request-id": requestId }),
        ...(body === undefined ? {} : { "content-type": text?.type ?? "application/json" }),
      },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, text: await response.text() };
  };
  return {
    ask: async (request) => {
      const answer = await send(request).catch(() => undefined);
      if (answer === undefined) return undefined;
      return { status: answer.status, body: answer.text === "" ? undefined : JSON.parse(answer.text) };
    },
    lines: async (path) => {
      const { status, text } = await send({ method: "GET", path });
      if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 200)}`);
      return text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    },
    signIn: async (username, password) => {
      token = undefined;
      const { status, text } = await send({ method: "POST", path: "/auth/login", json: { username, password } });
      if (status !== 200) throw new Error(`signing in: ${status} ${text.slice(0, 200)}`);
      token = JSON.parse(text).access_token;
    },
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  };
}

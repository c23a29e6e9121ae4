/** A small HTTP exchange with a service that hands out tokens: no redirect, no proxy, limits on time and size. */
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import type { LookupFunction } from "node:net";
import { codedError } from "./errors.ts";

export type BoundedRequest = {
  readonly method: "GET" | "POST";
  /** http: or https:. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of the whole exchange. */
  readonly timeoutMs: number;
  readonly bytesMax: number;
  /** In place of the system's resolver. */
  readonly lookup?: LookupFunction;
  readonly signal?: AbortSignal;
};

export type BoundedResponse = { readonly status: number; readonly body: string };

/**
 * What the service answers, whatever its status. Rejects with a CodedError: "ETIMEDOUT" where the time is over, "E2BIG"
 * where the answer is larger, and what the network or TLS say.
 */
export function boundedRequest(wanted: BoundedRequest): Promise<BoundedResponse> {
  const { method, url, headers, body, timeoutMs, bytesMax, lookup, signal } = wanted;
  const send = url.protocol === "https:" ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method,
      // The length is named: not every token service reads chunks.
      headers: body === undefined ? headers : { ...headers, "Content-Length": String(Buffer.byteLength(body)) },
      // An agent of its own: the global one may have been told to use a proxy.
      agent: false,
      ...(lookup === undefined ? {} : { lookup }),
      ...(signal === undefined ? {} : { signal }),
      minVersion: "TLSv1.2",
    });
    const timer = setTimeout(
      () => request.destroy(codedError("ETIMEDOUT", `no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    request.on("error", fail);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > bytesMax) request.destroy(codedError("E2BIG", `the answer is above ${bytesMax} bytes`));
        else chunks.push(chunk);
      });
      response.on("error", fail);
      // Without "end" before it, the answer was cut off.
      response.on("close", () => fail(codedError("ECONNRESET", "the answer was cut off")));
      response.on("end", () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks, length).toString("utf8") });
      });
    });
    request.end(body);
  });
}

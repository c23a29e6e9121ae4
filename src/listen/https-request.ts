/** What a request over HTTP asks for, by its head alone (RFC 8484 section 4.1). */
import { STREAM_MESSAGE_BYTES } from "./limits.ts";

export type RequestHead = {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly contentLength: string | undefined;
};

/** Not found, method, not understood, too large, media type. */
export type RefusedStatus = 400 | 404 | 405 | 413 | 415 | 503;

export type Asked =
  | { readonly kind: "message"; readonly message: Buffer }
  /** The message is the body. */
  | { readonly kind: "body" }
  | { readonly kind: "refused"; readonly status: RefusedStatus };

const DOH_PATH = "/dns-query";
export const DOH_MEDIA_TYPE = "application/dns-message";
export const DOH_METHODS = "GET, POST";

/** The least that has a header (RFC 1035 section 4.1.1). */
export const DNS_HEADER_BYTES = 12;

const PLAIN_GET = `${DOH_PATH}?dns=`;
/** RFC 4648 section 5, without padding (RFC 8484 section 6). */
const BASE64URL = /^[A-Za-z0-9_-]+$/;

export function readRequest({ method, target, contentType, contentLength }: RequestHead): Asked {
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  if (path !== DOH_PATH) return refused(404);
  if (method === "GET") return readVariable(dnsVariable(target, question));
  if (method !== "POST") return refused(405);
  if (mediaType(contentType) !== DOH_MEDIA_TYPE) return refused(415);
  if (contentLength !== undefined && Number(contentLength) > STREAM_MESSAGE_BYTES) return refused(413);
  return { kind: "body" };
}

function refused(status: RefusedStatus): Asked {
  return { kind: "refused", status };
}

/** The variable `dns` of the query; undefined where there is none, or more than one. */
function dnsVariable(target: string, question: number): string | undefined {
  // What every client sends is not worth a parser.
  const plain = target.startsWith(PLAIN_GET) ? target.slice(PLAIN_GET.length) : "";
  if (BASE64URL.test(plain)) return plain;
  const values = question < 0 ? [] : new URLSearchParams(target.slice(question)).getAll("dns");
  return values.length === 1 ? values[0] : undefined;
}

function readVariable(text: string | undefined): Asked {
  // One character more than whole groups of four are no byte.
  if (text === undefined || !BASE64URL.test(text) || text.length % 4 === 1) return refused(400);
  const message = Buffer.from(text, "base64url");
  if (message.length > STREAM_MESSAGE_BYTES) return refused(413);
  return message.length < DNS_HEADER_BYTES ? refused(400) : { kind: "message", message };
}

/** Without its parameters; names of media types have no case (RFC 9110 section 8.3.1). */
function mediaType(text: string | undefined): string {
  if (text === DOH_MEDIA_TYPE) return text;
  return (text ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

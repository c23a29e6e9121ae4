/**
 * The files of a multipart/form-data body (RFC 7578, RFC 2046 section 5.1) that is in memory already. Parts are slices of
 * the body, not copies. Whatever is odd about the form is refused: nothing of it reaches a file system.
 */
import {
  FILE_NAME_MAX,
  IMPORT_ZONES_MAX,
  MULTIPART_BOUNDARY_MAX,
  MULTIPART_HEADER_BYTES_MAX,
} from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";

/** `name` is for messages only: the last part of the path that the client gave, printable, or the name of the field. */
export type FormFile = { readonly name: string; readonly content: Uint8Array };

const CRLF = Buffer.from("\r\n");
const HEADER_END = Buffer.from("\r\n\r\n");
/** The characters of a boundary (RFC 2046 section 5.1.1). */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]*[0-9A-Za-z'()+_,\-./:=?]$/;
/** Encodings that leave the bytes as they are (RFC 7578 section 4.7 deprecates the header altogether). */
const PLAIN_ENCODINGS = new Set(["7bit", "8bit", "binary"]);

/** The files in the order of the body. Throws `invalid_request` on a broken form and on more than IMPORT_ZONES_MAX files. */
export function readFormFiles(contentType: string, body: Uint8Array): readonly FormFile[] {
  const boundary = boundaryOf(contentType);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const first = Buffer.from(`--${boundary}`, "latin1");
  const next = Buffer.from(`\r\n--${boundary}`, "latin1");
  // A preamble may stand before the first boundary, which then begins a line.
  const start = bytes.subarray(0, first.length).equals(first) ? first.length : endOf(bytes, next, 0);
  if (start < 0) throw refused("the body has no part: its boundary does not occur");
  const files: FormFile[] = [];
  let at = start;
  while (!isClosed(bytes, at)) {
    const headersAt = lineEnd(bytes, at);
    // Without headers the blank line follows at once; the search must see it.
    const headersEnd = bytes.subarray(headersAt, headersAt + MULTIPART_HEADER_BYTES_MAX).indexOf(HEADER_END);
    if (headersEnd < 0) throw refused(`part ${files.length + 1}: its headers do not end`);
    const contentAt = headersAt + headersEnd + HEADER_END.length;
    const contentEnd = bytes.indexOf(next, contentAt - CRLF.length);
    if (contentEnd < 0) throw refused(`part ${files.length + 1}: no boundary ends it`);
    if (files.length === IMPORT_ZONES_MAX) throw refused(`more than ${IMPORT_ZONES_MAX} files`);
    const headers = readHeaders(bytes.toString("utf8", headersAt, headersAt + headersEnd), files.length + 1);
    // The blank line's own end may be the line end that belongs to the boundary: then the part is empty.
    files.push({
      name: nameOf(headers, files.length + 1),
      content: body.subarray(contentAt, Math.max(contentAt, contentEnd)),
    });
    at = contentEnd + next.length;
  }
  if (files.length === 0) throw refused("the form holds no file");
  return files;
}

function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(contentType);
  const boundary = match?.[1]?.replaceAll(/\\(.)/g, "$1") ?? match?.[2];
  if (boundary === undefined) throw refused("Content-Type multipart/form-data names no boundary");
  if (boundary.length > MULTIPART_BOUNDARY_MAX || !BOUNDARY.test(boundary)) {
    throw refused(`the boundary is not one of 1 to ${MULTIPART_BOUNDARY_MAX} permitted characters`);
  }
  return boundary;
}

/** `--` behind a boundary closes the form; what follows is an epilogue. */
function isClosed(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x2d && bytes[at + 1] === 0x2d;
}

/** Where the line of a boundary ends, blanks behind it passed over; its CRLF is left for a header block that is empty. */
function lineEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
  if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) throw refused("a boundary is followed by other text on its line");
  return at;
}

function endOf(bytes: Buffer, pattern: Buffer, from: number): number {
  const at = bytes.indexOf(pattern, from);
  return at < 0 ? -1 : at + pattern.length;
}

function readHeaders(text: string, part: number): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  // A line that starts with a blank continues the one before it (RFC 5322 section 2.2.3).
  for (const line of text.replaceAll(/\r\n[ \t]+/g, " ").split("\r\n")) {
    if (line === "") continue;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    if (name === "") throw refused(`part ${part}: a header line without a name`);
    if (headers.has(name)) throw refused(`part ${part}: two headers ${JSON.stringify(name)}`);
    headers.set(name, line.slice(colon + 1).trim());
  }
  return headers;
}

function nameOf(headers: ReadonlyMap<string, string>, part: number): string {
  const disposition = headers.get("content-disposition");
  if (disposition === undefined || !/^form-data(;|\s|$)/i.test(disposition)) {
    throw refused(`part ${part}: no Content-Disposition: form-data`);
  }
  const encoding = headers.get("content-transfer-encoding")?.toLowerCase();
  if (encoding !== undefined && !PLAIN_ENCODINGS.has(encoding)) {
    throw refused(`part ${part}: Content-Transfer-Encoding is not understood; send the bytes as they are`);
  }
  if (/^multipart\//i.test(headers.get("content-type") ?? "")) {
    throw refused(`part ${part}: a form inside of a form; send each file as a part of its own`);
  }
  return shownName(parameter(disposition, "filename") ?? parameter(disposition, "name") ?? "") || `part ${part}`;
}

function parameter(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, "i").exec(header);
  return match?.[1]?.replaceAll(/\\(["\\])/g, "$1") ?? match?.[2];
}

/** The last component of a path in either spelling, without what would not print on one line. */
function shownName(path: string): string {
  const last = path.split(/[/\\]/).at(-1) ?? "";
  return last
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, "")
    .slice(0, FILE_NAME_MAX)
    .toWellFormed()
    .trim();
}

function refused(detail: string): Refusal {
  return new Refusal("invalid_request", detail, [{ pointer: "", detail }]);
}

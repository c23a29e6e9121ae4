/** Reads the head of an HTTP/1 response (RFC 9112) out of pieces of any size, and of it nothing but the status. */

export const HEAD_BYTES_MAX = 16_384;
/** Interim responses (RFC 9110 section 15.2) before the final one. */
const INTERIM_MAX = 8;

export type HeadOutcome =
  | { readonly kind: "more" }
  /** The final response's, with its head complete. */
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "fault"; readonly detail: string };

export type HeadReader = {
  /** The piece may change once this returns. Not to be called again after "status" or "fault". */
  readonly feed: (piece: Buffer) => HeadOutcome;
};

const MORE: HeadOutcome = { kind: "more" };
const NO_HTTP: HeadOutcome = { kind: "fault", detail: "the answer is not HTTP/1" };
const TOO_LARGE: HeadOutcome = { kind: "fault", detail: `the answer's headers are above ${HEAD_BYTES_MAX} bytes` };
const TOO_MANY: HeadOutcome = { kind: "fault", detail: `more than ${INTERIM_MAX} interim answers` };

const CR = 0x0d;
const LF = 0x0a;
const VERSION = Buffer.from("HTTP/1.");
/** "HTTP/1.1 200" */
const STATUS_END = 12;

/** `isFinal` says of a status below 200 that it is the answer all the same. */
export function createHeadReader(isFinal: (status: number) => boolean): HeadReader {
  let kept: Buffer | undefined;
  let interim = 0;
  const read = (bytes: Buffer): HeadOutcome => {
    let start = 0;
    for (;;) {
      if (!beginsAsHttp(bytes, start)) return NO_HTTP;
      const end = headEnd(bytes, start);
      if ((end < 0 ? bytes.length : end) - start > HEAD_BYTES_MAX) return TOO_LARGE;
      if (end < 0) {
        // Copied, as the piece is the caller's.
        kept = Buffer.from(bytes.subarray(start));
        return MORE;
      }
      const status = statusOf(bytes, start);
      if (status === undefined) return NO_HTTP;
      // 101 ends HTTP on this connection, and nobody asked for that.
      if (status >= 200 || status === 101 || isFinal(status)) return { kind: "status", status };
      if (++interim > INTERIM_MAX) return TOO_MANY;
      start = end;
    }
  };
  return { feed: (piece) => read(kept === undefined ? piece : Buffer.concat([kept, piece])) };
}

/** As far as it goes: a server of another protocol is known by its first bytes. */
function beginsAsHttp(bytes: Buffer, start: number): boolean {
  const length = Math.min(VERSION.length, bytes.length - start);
  for (let at = 0; at < length; at++) if (bytes[start + at] !== VERSION[at]) return false;
  return true;
}

/** Behind the empty line; -1 where there is none yet. A line may end with LF alone (RFC 9112 section 2.2). */
function headEnd(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(LF, start); at >= 0; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

function statusOf(bytes: Buffer, start: number): number | undefined {
  const line = bytes.toString("latin1", start, start + STATUS_END + 1);
  const status = /^HTTP\/1\.[0-9] ([1-9][0-9]{2})[ \r\n]$/.exec(line)?.[1];
  return status === undefined ? undefined : Number(status);
}

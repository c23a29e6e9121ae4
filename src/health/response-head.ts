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

/** Where in the head the last byte was: in a line, at the end of one, at its end and a CR behind it, at the empty line's. */
const IN_LINE = 0;
const LINE_END = 1;
const LINE_END_CR = 2;
const HEAD_END = 3;

/**
 * Looks at every byte once, in however many pieces they come: the other side may choose them as small as it likes. `isFinal`
 * says of a status below 200 that it is the answer all the same.
 */
export function createHeadReader(isFinal: (status: number) => boolean): HeadReader {
  /** The beginning of the status line; of the rest nothing is kept. */
  const first = Buffer.alloc(STATUS_END + 1);
  let length = 0;
  let place = IN_LINE;
  let interim = 0;
  return {
    feed: (piece) => {
      for (const byte of piece) {
        // A server of another protocol is known by its first bytes.
        if (length < VERSION.length && byte !== VERSION[length]) return NO_HTTP;
        if (length < first.length) first[length] = byte;
        length += 1;
        if (length > HEAD_BYTES_MAX) return TOO_LARGE;
        place = placeBehind(place, byte);
        if (place !== HEAD_END) continue;
        const status = statusOf(first.toString("latin1", 0, length));
        if (status === undefined) return NO_HTTP;
        // 101 ends HTTP on this connection, and nobody asked for that.
        if (status >= 200 || status === 101 || isFinal(status)) return { kind: "status", status };
        if (++interim > INTERIM_MAX) return TOO_MANY;
        length = 0;
        place = IN_LINE;
      }
      return MORE;
    },
  };
}

/** A line may end with LF alone (RFC 9112 section 2.2). */
function placeBehind(place: number, byte: number): number {
  if (byte === LF) return place === IN_LINE ? LINE_END : HEAD_END;
  return byte === CR && place === LINE_END ? LINE_END_CR : IN_LINE;
}

function statusOf(line: string): number | undefined {
  const status = /^HTTP\/1\.[0-9] ([1-9][0-9]{2})[ \r\n]$/.exec(line)?.[1];
  return status === undefined ? undefined : Number(status);
}

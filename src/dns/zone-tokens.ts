/**
 * Tokens of zone-file text (RFC 1035 section 5.1). One call reads one entry: a line, or several joined by parentheses.
 * Tokens are offsets into the text, kept in arrays that each entry uses again, so that a file of a million records
 * makes no object a token. Lines end at LF, CRLF or a CR alone.
 */

export const ENTRY = { END: 0, TOKENS: 1, FAULT: 2 } as const;

export type ZoneTokens = {
  readonly text: Uint8Array;
  /** Where reading goes on, and the line it is on (from 1) with its first byte. */
  position: number;
  line: number;
  lineStart: number;
  /** The entry's tokens. A quoted token lies between its quotes. Escapes are still in place. */
  count: number;
  starts: Int32Array;
  ends: Int32Array;
  quoted: Uint8Array;
  lines: Int32Array;
  lineStarts: Int32Array;
  /** The entry starts in the first column, so its first token is an owner or a directive. */
  hasOwner: boolean;
  /** Why the last entry is ENTRY.FAULT, and where. */
  fault: string;
  faultAt: number;
  faultLine: number;
  faultLineStart: number;
};

const PLAIN = 0;
const SPACE = 1;
const NEWLINE = 2;
const COMMENT = 3;
const OPEN = 4;
const CLOSE = 5;
const QUOTE = 6;
const BACKSLASH = 7;
const NUL = 8;

const LF = 0x0a;
const CR = 0x0d;
const TOKENS_AT_START = 64;
/** Above what any record needs: generic rdata of 65,535 bytes with each hexadecimal digit on its own. */
const TOKENS_MAX = 131_072 + 16;

const KIND = new Uint8Array(256);
KIND[0x20] = SPACE;
KIND[0x09] = SPACE;
KIND[LF] = NEWLINE;
KIND[CR] = NEWLINE;
KIND[0x3b] = COMMENT;
KIND[0x28] = OPEN;
KIND[0x29] = CLOSE;
KIND[0x22] = QUOTE;
KIND[0x5c] = BACKSLASH;
KIND[0] = NUL;

/** Tokens of `text` from its start; a UTF-8 byte order mark is passed over. */
export function openZoneTokens(text: Uint8Array): ZoneTokens {
  const start = text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf ? 3 : 0;
  return {
    text,
    position: start,
    line: 1,
    lineStart: start,
    count: 0,
    starts: new Int32Array(TOKENS_AT_START),
    ends: new Int32Array(TOKENS_AT_START),
    quoted: new Uint8Array(TOKENS_AT_START),
    lines: new Int32Array(TOKENS_AT_START),
    lineStarts: new Int32Array(TOKENS_AT_START),
    hasOwner: false,
    fault: "",
    faultAt: start,
    faultLine: 1,
    faultLineStart: start,
  };
}

/**
 * Reads the next entry that has tokens: ENTRY.TOKENS, ENTRY.END behind the last one, or ENTRY.FAULT, after which the
 * next call goes on at the next line.
 */
export function readEntry(tokens: ZoneTokens): number {
  while (tokens.position < tokens.text.length) {
    const outcome = readLogicalLine(tokens);
    if (outcome === ENTRY.FAULT || tokens.count > 0) return outcome;
  }
  return ENTRY.END;
}

/** The column (from 1, in characters) of the byte at `at` on the line that starts at `lineStart`. */
export function columnOf(text: Uint8Array, lineStart: number, at: number): number {
  let column = 1;
  for (let index = lineStart; index < at; index++) if ((text[index]! & 0xc0) !== 0x80) column++;
  return column;
}

function readLogicalLine(tokens: ZoneTokens): number {
  const { text } = tokens;
  const length = text.length;
  let at = tokens.position;
  let openAt = -1;
  let openLine = 0;
  let openLineStart = 0;
  tokens.count = 0;
  tokens.hasOwner = KIND[text[at]!] !== SPACE;
  while (at < length) {
    const kind = KIND[text[at]!]!;
    if (kind === SPACE) {
      at++;
    } else if (kind === PLAIN || kind === BACKSLASH) {
      const end = endOfWord(text, at, length);
      if (tokens.count === TOKENS_MAX) return failLine(tokens, at, "too many words for one record");
      addToken(tokens, at, end, 0);
      at = end;
    } else if (kind === NEWLINE) {
      at = passNewline(tokens, at);
      if (openAt < 0) {
        tokens.position = at;
        return ENTRY.TOKENS;
      }
    } else if (kind === COMMENT) {
      while (at < length && KIND[text[at]!] !== NEWLINE) at++;
    } else if (kind === QUOTE) {
      const end = endOfQuoted(text, at + 1, length);
      if (end < 0) return failLine(tokens, at, "the quoted text does not end on its line");
      if (tokens.count === TOKENS_MAX) return failLine(tokens, at, "too many words for one record");
      addToken(tokens, at + 1, end, 1);
      at = end + 1;
    } else if (kind === OPEN) {
      // Nesting says nothing more than one pair does, and its refusal ends the reach of a parenthesis left open here.
      if (openAt >= 0) return failAtParenthesis(tokens, openAt, openLine, openLineStart);
      openAt = at;
      openLine = tokens.line;
      openLineStart = tokens.lineStart;
      at++;
    } else if (kind === CLOSE) {
      if (openAt < 0) return failLine(tokens, at, "closing parenthesis without an opening one");
      openAt = -1;
      at++;
    } else {
      return failLine(tokens, at, "NUL byte");
    }
  }
  if (openAt >= 0) return failAtParenthesis(tokens, openAt, openLine, openLineStart);
  tokens.position = at;
  return ENTRY.TOKENS;
}

/** The first byte behind the unquoted word at `at`. A backslash hides the meaning of the byte behind it. */
function endOfWord(text: Uint8Array, start: number, length: number): number {
  let at = start;
  while (at < length) {
    const kind = KIND[text[at]!]!;
    if (kind === PLAIN) {
      at++;
    } else if (kind === BACKSLASH) {
      at++;
      const hidden = at < length ? KIND[text[at]!]! : NEWLINE;
      if (hidden !== NEWLINE && hidden !== NUL) at++;
    } else {
      break;
    }
  }
  return at;
}

/** The place of the closing quote, or -1 where the line ends before it. */
function endOfQuoted(text: Uint8Array, start: number, length: number): number {
  for (let at = start; at < length; at++) {
    const kind = KIND[text[at]!]!;
    if (kind === QUOTE) return at;
    if (kind === NEWLINE) return -1;
    if (kind === BACKSLASH && at + 1 < length && KIND[text[at + 1]!] !== NEWLINE) at++;
  }
  return -1;
}

function passNewline(tokens: ZoneTokens, at: number): number {
  const next = tokens.text[at] === CR && tokens.text[at + 1] === LF ? at + 2 : at + 1;
  tokens.line++;
  tokens.lineStart = next;
  return next;
}

function addToken(tokens: ZoneTokens, start: number, end: number, quoted: number): void {
  const index = tokens.count;
  if (index === tokens.starts.length) growTokens(tokens);
  tokens.starts[index] = start;
  tokens.ends[index] = end;
  tokens.quoted[index] = quoted;
  tokens.lines[index] = tokens.line;
  tokens.lineStarts[index] = tokens.lineStart;
  tokens.count = index + 1;
}

function growTokens(tokens: ZoneTokens): void {
  const size = tokens.starts.length * 2;
  tokens.starts = grown(tokens.starts, new Int32Array(size));
  tokens.ends = grown(tokens.ends, new Int32Array(size));
  tokens.quoted = grown(tokens.quoted, new Uint8Array(size));
  tokens.lines = grown(tokens.lines, new Int32Array(size));
  tokens.lineStarts = grown(tokens.lineStarts, new Int32Array(size));
}

function grown<Values extends Int32Array | Uint8Array>(from: Values, to: Values): Values {
  to.set(from);
  return to;
}

function failLine(tokens: ZoneTokens, at: number, fault: string): number {
  tokens.fault = fault;
  tokens.faultAt = at;
  tokens.faultLine = tokens.line;
  tokens.faultLineStart = tokens.lineStart;
  return skipLine(tokens, at);
}

function failAtParenthesis(tokens: ZoneTokens, openAt: number, openLine: number, openLineStart: number): number {
  tokens.fault = "the parenthesis is not closed before the next one or the end of the text";
  tokens.faultAt = openAt;
  tokens.faultLine = openLine;
  tokens.faultLineStart = openLineStart;
  tokens.line = openLine;
  tokens.lineStart = openLineStart;
  return skipLine(tokens, openAt);
}

function skipLine(tokens: ZoneTokens, from: number): number {
  const { text } = tokens;
  let at = from;
  while (at < text.length && KIND[text[at]!] !== NEWLINE) at++;
  tokens.position = at < text.length ? passNewline(tokens, at) : at;
  return ENTRY.FAULT;
}

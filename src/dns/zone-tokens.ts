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
  /** The parenthesis that is open, or -1, and its line. */
  openAt: number;
  openLine: number;
  openLineStart: number;
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

const TOO_MANY = "too many words for one record";
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
    openAt: -1,
    openLine: 1,
    openLineStart: start,
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
  tokens.count = 0;
  tokens.openAt = -1;
  tokens.hasOwner = KIND[text[at]!] !== SPACE;
  while (at < length) {
    const kind = KIND[text[at]!]!;
    if (kind === SPACE) {
      at++;
    } else if (kind === PLAIN || kind === BACKSLASH) {
      const end = endOfWord(text, at, length);
      if (!addToken(tokens, at, end, 0)) return failEntry(tokens, at, TOO_MANY);
      at = end;
    } else if (kind === NEWLINE) {
      at = passNewline(tokens, at);
      if (tokens.openAt < 0) {
        tokens.position = at;
        return ENTRY.TOKENS;
      }
    } else if (kind === COMMENT) {
      while (at < length && KIND[text[at]!] !== NEWLINE) at++;
    } else if (kind === QUOTE) {
      const end = endOfQuoted(text, at + 1, length);
      if (end < 0) return failEntry(tokens, at, "the quoted text does not end on its line");
      if (!addToken(tokens, at + 1, end, 1)) return failEntry(tokens, at, TOO_MANY);
      at = end + 1;
    } else if (kind === OPEN) {
      // Nesting says nothing more than one pair does, and its refusal ends the reach of a parenthesis left open.
      if (tokens.openAt >= 0) return failEntry(tokens, at, "a parenthesis inside of another");
      tokens.openAt = at;
      tokens.openLine = tokens.line;
      tokens.openLineStart = tokens.lineStart;
      at++;
    } else if (kind === CLOSE) {
      if (tokens.openAt < 0) return failEntry(tokens, at, "closing parenthesis without an opening one");
      tokens.openAt = -1;
      at++;
    } else {
      return failEntry(tokens, at, "NUL byte");
    }
  }
  if (tokens.openAt >= 0) return failEntry(tokens, at, "the end of the text");
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

/** False where the entry has as many tokens as it may have. */
function addToken(tokens: ZoneTokens, start: number, end: number, quoted: number): boolean {
  const index = tokens.count;
  if (index === TOKENS_MAX) return false;
  if (index === tokens.starts.length) growTokens(tokens);
  tokens.starts[index] = start;
  tokens.ends[index] = end;
  tokens.quoted[index] = quoted;
  tokens.lines[index] = tokens.line;
  tokens.lineStarts[index] = tokens.lineStart;
  tokens.count = index + 1;
  return true;
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

/**
 * Ends the entry with a fault at `at`. Under an open parenthesis the fault is at that: it was likely meant to be closed
 * earlier, so reading goes on behind its line and no record below it is lost.
 */
function failEntry(tokens: ZoneTokens, at: number, fault: string): number {
  const isOpen = tokens.openAt >= 0;
  if (isOpen) {
    tokens.fault = `the parenthesis is not closed: line ${tokens.line}: ${fault}`;
    tokens.line = tokens.openLine;
    tokens.lineStart = tokens.openLineStart;
  } else {
    tokens.fault = fault;
  }
  tokens.faultAt = isOpen ? tokens.openAt : at;
  tokens.faultLine = tokens.line;
  tokens.faultLineStart = tokens.lineStart;
  return skipLine(tokens, tokens.faultAt);
}

function skipLine(tokens: ZoneTokens, from: number): number {
  const { text } = tokens;
  let at = from;
  while (at < text.length && KIND[text[at]!] !== NEWLINE) at++;
  tokens.position = at < text.length ? passNewline(tokens, at) : at;
  return ENTRY.FAULT;
}

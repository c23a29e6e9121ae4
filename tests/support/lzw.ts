/** The writing side of src/cluster/lzw.ts, plain and slow, for tests. */

const CLEAR = 256;
const END = 257;
const CODES_MAX = 4_096;

/** What the codes are as bits, least significant first. */
function createBits() {
  const bytes: number[] = [];
  let bits = 0;
  let count = 0;
  return {
    put: (code: number, width: number) => {
      bits |= code << count;
      for (count += width; count >= 8; count -= 8) {
        bytes.push(bits & 0xff);
        bits >>>= 8;
      }
    },
    end: () => Uint8Array.from([...bytes, bits & 0xff]),
  };
}

/** The text that stands for the bytes. A writer may clear a full table (Go's does) or go on with it. */
export function deflateLzw(bytes: Uint8Array, { clearsWhenFull = true } = {}): Uint8Array {
  const output = createBits();
  let table = new Map<string, number>();
  let next = END + 1;
  let width = 9;
  let run = "";
  const codeOf = (text: string) => (text.length === 1 ? text.charCodeAt(0) : (table.get(text) ?? -1));
  const put = (code: number) => {
    output.put(code, width);
  };
  // The reader makes each entry one code later than the writer does: it grows when the writer would have grown by then.
  const grow = () => {
    if (next > 2 ** width && width < 12) width += 1;
  };
  put(CLEAR);
  for (const byte of bytes) {
    const longer = run + String.fromCharCode(byte);
    if (longer.length === 1 || table.has(longer)) {
      run = longer;
      continue;
    }
    put(codeOf(run));
    if (next < CODES_MAX) table.set(longer, next++);
    grow();
    if (next === CODES_MAX && clearsWhenFull) {
      put(CLEAR);
      table = new Map();
      next = END + 1;
      width = 9;
    }
    run = String.fromCharCode(byte);
  }
  if (run !== "") {
    put(codeOf(run));
    next += 1;
    grow();
  }
  put(END);
  return output.end();
}

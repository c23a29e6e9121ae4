/** Passwords: argon2id (RFC 9106) in PHC text, off the event loop, never more at once than memory and cores allow. */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { Refusal } from "../model/refusal.ts";

/** OWASP's second choice for argon2id: 19 MiB, two passes, one lane; some 40 ms of one core. */
const MEMORY_KIB = 19_456;
const PASSES = 2;
const LANES = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;

/** Together 38 MiB, and two of libuv's four threads: reads of files and checks of tokens go on beside them. */
const AT_ONCE = 2;
/** About two seconds of work; whoever comes later is told to come again. */
const WAITING_MAX = 64;

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

type Phc = {
  readonly memoryKib: number;
  readonly passes: number;
  readonly lanes: number;
  readonly salt: Buffer;
  readonly tag: Buffer;
};

function parsePhc(text: string): Phc | undefined {
  const [, memory, passes, lanes, salt, tag] = PHC.exec(text) ?? [];
  if (memory === undefined || salt === undefined || tag === undefined) return undefined;
  return {
    memoryKib: Number(memory),
    passes: Number(passes),
    lanes: Number(lanes),
    salt: Buffer.from(salt, "base64"),
    tag: Buffer.from(tag, "base64"),
  };
}

const unpadded = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replaceAll("=", "");

function phcText(salt: Uint8Array, tag: Uint8Array): string {
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${unpadded(salt)}$${unpadded(tag)}`;
}

function derive(
  password: string,
  salt: Uint8Array,
  phc: Omit<Phc, "salt" | "tag">,
  tagLength: number,
): Promise<Buffer> {
  const parameters: Argon2Parameters = {
    // One form of each character, so that keyboards that compose accents differently agree (RFC 8265 section 4.2.2).
    message: password.normalize("NFC"),
    nonce: salt,
    parallelism: phc.lanes,
    tagLength,
    memory: phc.memoryKib,
    passes: phc.passes,
  };
  return new Promise((resolve, reject) => {
    argon2("argon2id", parameters, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
}

/** Lets AT_ONCE pieces of work run, WAITING_MAX wait in order, and refuses the rest with `rate_limited`. */
function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= AT_ONCE) {
      if (waiting.length >= WAITING_MAX)
        throw new Refusal("rate_limited", "too many passwords are being checked; try again", [], { retry_after: 1 });
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The place is handed on, so that nobody who comes meanwhile can take it.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

export type Passwords = {
  /** The PHC text of a password, with a salt of its own. */
  readonly hash: (password: string) => Promise<string>;
  /** Whether it is the password of that PHC text. Without a text the same work is done, and the answer is false. */
  readonly verify: (password: string, phc: string | undefined) => Promise<boolean>;
};

const CURRENT = { memoryKib: MEMORY_KIB, passes: PASSES, lanes: LANES };

export function createPasswords(): Passwords {
  const enqueue = createQueue();
  const nobody: Phc = { ...CURRENT, salt: randomBytes(SALT_BYTES), tag: randomBytes(TAG_BYTES) };
  return {
    hash: (password) =>
      enqueue(async () => {
        const salt = randomBytes(SALT_BYTES);
        return phcText(salt, await derive(password, salt, CURRENT, TAG_BYTES));
      }),
    verify: (password, text) =>
      enqueue(async () => {
        const known = text === undefined ? undefined : parsePhc(text);
        const phc = known ?? nobody;
        const tag = await derive(password, phc.salt, phc, phc.tag.length);
        return timingSafeEqual(tag, phc.tag) && known !== undefined;
      }),
  };
}

/**
 * Frames on a stream of bytes: the length of the body (u32, big-endian), its kind (u8), the body. Reading holds one frame that
 * is not whole yet; what it takes grows with what has arrived, not with what was announced.
 */

export const FRAME_HEADER_BYTES = 5;
/** What the first buffer of a frame holds that comes in several chunks. */
const FIRST_BYTES = 16 * 1024;

export type FrameReader = {
  /** Takes the next bytes of the stream. */
  readonly push: (chunk: Uint8Array) => void;
};

export type FrameReaderOptions = {
  /** The longest body that may come now. */
  readonly bodyBytesMax: () => number;
  /** The body belongs to whoever is called. False: nothing is read any more. */
  readonly onFrame: (kind: number, body: Uint8Array) => boolean;
  /** The frame that begins is longer than `bodyBytesMax`; nothing is read any more. */
  readonly onOversized: (bodyBytes: number) => void;
};

function bodyBytesAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

export function createFrameReader({ bodyBytesMax, onFrame, onOversized }: FrameReaderOptions): FrameReader {
  let isStopped = false;
  /** The frame that is not whole yet, from its first byte. */
  let held = Buffer.alloc(0);
  let heldBytes = 0;

  /** Of the frame that begins at `at`, header included; 0 where the header is not whole, and where reading has stopped. */
  const frameBytes = (bytes: Uint8Array, at: number, end: number): number => {
    if (end - at < FRAME_HEADER_BYTES) return 0;
    const bodyBytes = bodyBytesAt(bytes, at);
    if (bodyBytes <= bodyBytesMax()) return FRAME_HEADER_BYTES + bodyBytes;
    isStopped = true;
    onOversized(bodyBytes);
    return 0;
  };
  const take = (bytes: Uint8Array, at: number, size: number) => {
    const body = bytes.subarray(at + FRAME_HEADER_BYTES, at + size);
    if (!onFrame(bytes[at + FRAME_HEADER_BYTES - 1]!, body)) isStopped = true;
  };
  const hold = (chunk: Uint8Array, from: number, to: number, frameSize: number) => {
    const wanted = heldBytes + to - from;
    if (wanted > held.length) {
      const size = Math.max(wanted, Math.min(frameSize, Math.max(FIRST_BYTES, held.length * 2)));
      const larger = Buffer.allocUnsafeSlow(size);
      larger.set(held.subarray(0, heldBytes));
      held = larger;
    }
    held.set(chunk.subarray(from, to), heldBytes);
    heldBytes = wanted;
  };
  /** Goes on with the frame that is held; where in the chunk the next one begins. */
  const fill = (chunk: Uint8Array): number => {
    let at = Math.min(chunk.length, Math.max(0, FRAME_HEADER_BYTES - heldBytes));
    hold(chunk, 0, at, FRAME_HEADER_BYTES);
    const size = frameBytes(held, 0, heldBytes);
    if (size === 0) return at;
    const end = Math.min(chunk.length, at + size - heldBytes);
    hold(chunk, at, end, size);
    at = end;
    if (heldBytes < size) return at;
    const whole = held;
    held = Buffer.alloc(0);
    heldBytes = 0;
    take(whole, 0, size);
    return at;
  };
  const push = (chunk: Uint8Array) => {
    if (isStopped) return;
    let at = heldBytes > 0 ? fill(chunk) : 0;
    while (!isStopped && at < chunk.length) {
      const size = frameBytes(chunk, at, chunk.length);
      if (isStopped) return;
      if (size === 0 || at + size > chunk.length) return hold(chunk, at, chunk.length, size);
      take(chunk, at, size);
      at += size;
    }
  };
  return { push };
}

/** As much is given to the network at once. */
const BATCH_BYTES = 128 * 1024;
/** Places of copied frames that a long queue keeps until they are half of it. */
const COPIED_MAX = 1_000;

export type FrameWriter = {
  readonly send: (kind: number, body: Uint8Array) => void;
  /** Of frames that were sent and that the network has not taken, headers included. */
  readonly untakenBytes: () => number;
  /** Calls back once, when everything that was sent has been taken; never, where the stream ends before. */
  readonly whenTaken: (run: () => void) => void;
  readonly takenBytes: () => number;
  /** Gives up what has not been taken. */
  readonly stop: () => void;
};

export type FrameWriterOptions = {
  /** Calls back when the network has taken the bytes; never, where it does not. */
  readonly write: (bytes: Uint8Array, onTaken: () => void) => void;
  /** A batch has been taken: `before` and `after` are what was and is untaken. */
  readonly onTaken: (before: number, after: number) => void;
};

type OutgoingFrame = { readonly kind: number; readonly body: Uint8Array };

/** Frames in the order in which they were sent, copied out as far as a batch has room. */
function createFrameQueue() {
  let queue: (OutgoingFrame | undefined)[] = [];
  /** The first frame that is not copied whole, and how many bytes of it are. */
  let next = 0;
  let offset = 0;
  /** Copies what fits of it; the number of bytes. */
  const copy = ({ kind, body }: OutgoingFrame, batch: Buffer, at: number): number => {
    let size = 0;
    if (offset === 0) {
      // A header is never split.
      if (batch.length - at < FRAME_HEADER_BYTES) return 0;
      batch.writeUInt32BE(body.length, at);
      batch[at + FRAME_HEADER_BYTES - 1] = kind;
      size = FRAME_HEADER_BYTES;
      offset = FRAME_HEADER_BYTES;
    }
    const from = offset - FRAME_HEADER_BYTES;
    const part = body.subarray(from, from + batch.length - at - size);
    batch.set(part, at + size);
    offset += part.length;
    if (from + part.length === body.length) {
      // The queue need not keep what is copied.
      queue[next++] = undefined;
      offset = 0;
    }
    return size + part.length;
  };
  return {
    push: (frame: OutgoingFrame) => void queue.push(frame),
    /** How many bytes of the batch are filled. */
    fill: (batch: Buffer): number => {
      let size = 0;
      for (let frame = queue[next]; frame !== undefined && size < batch.length; frame = queue[next]) {
        const copied = copy(frame, batch, size);
        if (copied === 0) break;
        size += copied;
      }
      if (next === queue.length) {
        queue = [];
        next = 0;
      } else if (next > COPIED_MAX && next * 2 > queue.length) {
        queue = queue.slice(next);
        next = 0;
      }
      return size;
    },
    clear: () => {
      queue = [];
      next = 0;
    },
  };
}

/** Frames that are sent in one turn of the event loop go out together, and no more than BATCH_BYTES are encrypted at once. */
export function createFrameWriter({ write, onTaken }: FrameWriterOptions): FrameWriter {
  const queue = createFrameQueue();
  let untaken = 0;
  let taken = 0;
  let isWriting = false;
  let isStopped = false;
  let onEmpty: (() => void) | undefined;

  const flush = () => {
    if (isStopped) return;
    const batch = Buffer.allocUnsafe(Math.min(untaken, BATCH_BYTES));
    const size = queue.fill(batch);
    write(batch.subarray(0, size), () => written(size));
  };
  const written = (size: number) => {
    if (isStopped) return;
    const before = untaken;
    untaken -= size;
    taken += size;
    if (untaken > 0) flush();
    else isWriting = false;
    onTaken(before, untaken);
    if (untaken > 0 || onEmpty === undefined) return;
    const run = onEmpty;
    onEmpty = undefined;
    run();
  };
  return {
    send: (kind, body) => {
      if (isStopped) return;
      queue.push({ kind, body });
      untaken += FRAME_HEADER_BYTES + body.length;
      if (isWriting) return;
      isWriting = true;
      process.nextTick(flush);
    },
    untakenBytes: () => untaken,
    whenTaken: (run) => {
      if (untaken === 0) run();
      else onEmpty = run;
    },
    takenBytes: () => taken,
    stop: () => {
      isStopped = true;
      queue.clear();
      untaken = 0;
    },
  };
}

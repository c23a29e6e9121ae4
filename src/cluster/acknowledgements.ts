/** Answers that are waited for, by the sequence number of the ping. */
export type Waiting = {
  readonly onAck: () => void;
  readonly onNack: () => void;
};

export type Acknowledgements = {
  /** A sequence number for a new ping; whoever takes it gives it back with `forget`. */
  readonly expect: (waiting: Waiting) => number;
  readonly forget: (sequence: number) => void;
  readonly ack: (sequence: number) => void;
  readonly nack: (sequence: number) => void;
};

/** Numbers begin by chance, so that answers to an earlier life of this node meet nobody who waits. */
export function createAcknowledgements(random: () => number): Acknowledgements {
  const waiting = new Map<number, Waiting>();
  let last = Math.floor(random() * 2 ** 32);
  return {
    expect: (who) => {
      do last = (last + 1) >>> 0;
      while (
        // 0 is for pings whose answer nobody waits for.
        last === 0 ||
        waiting.has(last)
      );
      waiting.set(last, who);
      return last;
    },
    forget: (sequence) => void waiting.delete(sequence),
    ack: (sequence) => waiting.get(sequence)?.onAck(),
    nack: (sequence) => waiting.get(sequence)?.onNack(),
  };
}

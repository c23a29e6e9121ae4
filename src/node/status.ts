import { LIFE_SIGN_MS, START_MS_MAX } from "./limits.ts";

/**
 * What the supervisor and its threads tell each other without a message: which threads run and how often each was
 * replaced. The supervisor writes them, but for the signs of life.
 */
export type NodeStatus = {
  readonly words: SharedArrayBuffer;
  /** Names of the threads; a thread's words lie at its index. */
  readonly threads: readonly string[];
};

const STOPPING = 0;
const THREADS_AT = 1;
const THREAD_WORDS = 3;
const RUNNING = 0;
const RESTARTS = 1;
/** Seconds of the monotonic clock, of threads that give signs of life. Writer: the thread, and the supervisor when it starts one. */
const LIFE_SIGN = 2;

export function createNodeStatus(threads: readonly string[]): NodeStatus {
  return { words: new SharedArrayBuffer((THREADS_AT + threads.length * THREAD_WORDS) * 4), threads };
}

function store(status: NodeStatus, word: number, value: number): void {
  Atomics.store(new Int32Array(status.words), word, value);
}

function load(status: NodeStatus, word: number): number {
  return Atomics.load(new Int32Array(status.words), word);
}

function threadWord(status: NodeStatus, thread: string, word: number): number {
  const index = status.threads.indexOf(thread);
  if (index < 0) throw new Error(`no thread is named ${thread}`);
  return THREADS_AT + index * THREAD_WORDS + word;
}

export function setStopping(status: NodeStatus): void {
  store(status, STOPPING, 1);
}

export function isStopping(status: NodeStatus): boolean {
  return load(status, STOPPING) !== 0;
}

/** Gives a sign of life of a thread; all threads read the one clock of the machine. */
export function giveLifeSign(status: NodeStatus, thread: string): void {
  store(status, threadWord(status, thread, LIFE_SIGN), secondsNow());
}

/** Signs of life of the calling thread until it is disposed, each as soon as its event loop comes to it. */
export function giveLifeSigns(status: NodeStatus, thread: string): Disposable {
  giveLifeSign(status, thread);
  const timer = setInterval(() => giveLifeSign(status, thread), LIFE_SIGN_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Whether the last one is younger than `lifelessMs`, or the thread is still within the time that a start may take. */
export function isAlive(status: NodeStatus, thread: string, lifelessMs: number): boolean {
  const ageMs = (secondsNow() - load(status, threadWord(status, thread, LIFE_SIGN))) * 1000;
  return ageMs < (isRunning(status, thread) ? lifelessMs : Math.max(lifelessMs, START_MS_MAX));
}

/** `performance.now` begins anew in every thread, this clock does not. */
function secondsNow(): number {
  return Number((process.hrtime.bigint() / 1_000_000_000n) % 2_147_483_647n);
}

export function setRunning(status: NodeStatus, thread: string, running: boolean): void {
  store(status, threadWord(status, thread, RUNNING), running ? 1 : 0);
}

export function isRunning(status: NodeStatus, thread: string): boolean {
  return load(status, threadWord(status, thread, RUNNING)) !== 0;
}

export function countRestart(status: NodeStatus, thread: string): void {
  Atomics.add(new Int32Array(status.words), threadWord(status, thread, RESTARTS), 1);
}

export function restartsOf(status: NodeStatus, thread: string): number {
  return load(status, threadWord(status, thread, RESTARTS));
}

/**
 * The thread that reads what the answering threads tell, and writes it down: lines for the query log and for debug capture,
 * messages for dnstap. It lives only while somebody wants them, and nobody waits for it.
 */
import type { MessagePort } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { EVENT, type EventRing, eventRing, takeEvents, WANTED } from "../image/events.ts";
import { MAX_THREADS } from "../image/shared.ts";
import { dnstapMessage } from "./dnstap-message.ts";
import { type DnstapSocket, openDnstapSocket } from "./dnstap-socket.ts";
import { DEBUG_LINES_MAX } from "./limits.ts";
import { type LineSink, openLineSink } from "./query-log-file.ts";
import { eventLine } from "./query-log-line.ts";
import { type FromQueryLog, QUERY_LOG_FIGURE, type QueryLogData, type ToQueryLog } from "./query-log-messages.ts";

/** How long the thread sleeps when there was little to do. */
const PAUSE_MS = 10;
/** Events of one ring that are taken before the other rings have their turn. */
const EVENTS_A_TURN = 500;

type State = {
  readonly data: QueryLogData;
  readonly port: MessagePort;
  readonly rings: readonly EventRing[];
  readonly lineSink: LineSink | undefined;
  readonly dnstap: DnstapSocket | undefined;
  /** Of this turn. */
  lines: string[];
  /** For debug capture, until the control thread has taken those before them. */
  captured: string[];
  lost: number;
  isTaken: boolean;
  isStopping: boolean;
};

export function runQueryLog(data: QueryLogData, port: MessagePort): void {
  const figures = new Float64Array(data.figures);
  const count = (figure: number) => (by: number) => {
    figures[figure]! += by;
  };
  const log: Log = (level, message) => port.postMessage({ kind: "log", level, message } satisfies FromQueryLog);
  const { file, dnstapSocket } = data;
  const one = (figure: number) => () => count(figure)(1);
  const state: State = {
    data,
    port,
    rings: Array.from({ length: MAX_THREADS }, (_, thread) => eventRing(data.shared, thread)),
    lineSink:
      file === undefined
        ? undefined
        : openLineSink({
            path: file,
            nowMs: () => performance.now(),
            onWritten: count(QUERY_LOG_FIGURE.LINES),
            onLost: count(QUERY_LOG_FIGURE.LINES_LOST),
            log,
          }),
    dnstap:
      dnstapSocket === undefined
        ? undefined
        : openDnstapSocket({
            path: dnstapSocket,
            onWritten: one(QUERY_LOG_FIGURE.DNSTAP),
            onLost: one(QUERY_LOG_FIGURE.DNSTAP_LOST),
            log,
          }),
    lines: [],
    captured: [],
    lost: 0,
    isTaken: true,
    isStopping: false,
  };
  port.on("message", (message: ToQueryLog) => hear(state, message));
  turn(state);
}

function hear(state: State, message: ToQueryLog): void {
  switch (message.kind) {
    case "taken":
      state.isTaken = true;
      tell(state);
      break;
    case "reopen":
      state.lineSink?.reopen();
      break;
    case "stop":
      state.isStopping = true;
      void stop(state);
  }
}

function turn(state: State): void {
  if (state.isStopping) return;
  if (takeAll(state) >= EVENTS_A_TURN) setImmediate(() => turn(state));
  else setTimeout(() => turn(state), PAUSE_MS);
}

/** The number of events that the fullest ring had. */
function takeAll(state: State): number {
  let most = 0;
  for (const ring of state.rings) {
    most = Math.max(
      most,
      takeEvents(ring, EVENTS_A_TURN, (at) => takeEvent(state, ring, at)),
    );
  }
  if (state.lines.length > 0) {
    state.lineSink?.write(state.lines);
    state.lines = [];
  }
  tell(state);
  return most;
}

function takeEvent(state: State, ring: EventRing, at: number): void {
  const { data, lineSink, dnstap } = state;
  const wanted = ring.bytes[at + EVENT.WANTED]!;
  const isSampled = (wanted & WANTED.SAMPLED) !== 0;
  const isCaptured = (wanted & WANTED.CAPTURED) !== 0;
  if ((isSampled && lineSink !== undefined) || isCaptured) {
    const line = eventLine(ring, at, data.nodeId);
    if (isSampled && lineSink !== undefined) state.lines.push(`${line}\n`);
    if (isCaptured) capture(state, line);
  }
  // One that was told before anybody wanted whole answers has none.
  const isWhole =
    ring.data.getUint16(at + EVENT.MESSAGE_BYTES, true) === ring.data.getUint16(at + EVENT.ANSWER_BYTES, true);
  if (isSampled && dnstap !== undefined && isWhole) dnstap.offer(dnstapMessage(ring, at, data.nodeId, data.version));
}

function capture(state: State, line: string): void {
  state.captured.push(line);
  // Taken away some at a time: each by itself would move all the others.
  if (state.captured.length < DEBUG_LINES_MAX * 2) return;
  state.captured = state.captured.slice(DEBUG_LINES_MAX);
  state.lost += DEBUG_LINES_MAX;
}

/** One message at a time is on its way, so that a busy control thread is not buried. */
function tell(state: State): void {
  if (!state.isTaken || state.captured.length === 0) return;
  state.isTaken = false;
  const pushedOut = Math.max(state.captured.length - DEBUG_LINES_MAX, 0);
  const lines = state.captured.slice(pushedOut);
  state.port.postMessage({ kind: "lines", lines, lost: state.lost + pushedOut } satisfies FromQueryLog);
  state.captured = [];
  state.lost = 0;
}

async function stop(state: State): Promise<void> {
  state.isTaken = true;
  // What a ring holds, and not what comes meanwhile.
  for (let turns = 0; turns < 20 && takeAll(state) >= EVENTS_A_TURN; turns++) state.isTaken = true;
  state.isTaken = true;
  tell(state);
  state.lineSink?.close();
  await state.dnstap?.close();
  state.port.close();
}

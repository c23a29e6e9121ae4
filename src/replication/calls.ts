/** Questions over a channel, and the parts of their answers. */

import type { Timers } from "../cluster/transport.ts";
import { CALLS_OPEN_MAX, LONG_CALL_TIMEOUT_MS, SHORT_CALL_TIMEOUT_MS } from "./limits.ts";
import { type AnswerMessage, type Answers, type Ask, decodeAnswer, type Message, type Questions } from "./messages.ts";

export type Calls = {
  /** Resolves when the last part has come; rejects where there is no answer, or none in time. */
  readonly ask: <Name extends Ask>(
    ask: Name,
    question: Questions[Name],
    onPart: (part: Answers[Name], bytes: number) => void,
  ) => Promise<void>;
  /** Of a message of so many bytes. Throws MalformedError where it does not answer what was asked. */
  readonly onAnswer: (answer: AnswerMessage, bytes: number) => void;
  readonly close: (reason: string) => void;
};

type Open = {
  readonly onPart: (answer: AnswerMessage, bytes: number) => void;
  readonly end: (fault: string | undefined) => void;
  renew: () => void;
};

export function createCalls(options: { readonly timers: Timers; readonly send: (message: Message) => void }): Calls {
  const { timers, send } = options;
  const open = new Map<number, Open>();
  let lastId = 0;
  let closed: string | undefined;
  return {
    ask: (ask, question, onPart) => {
      if (closed !== undefined) return Promise.reject(new Error(closed));
      if (open.size >= CALLS_OPEN_MAX) return Promise.reject(new Error("too many questions to one peer"));
      lastId++;
      const id = lastId;
      return new Promise((resolve, reject) => {
        let cancel: (() => void) | undefined;
        const end = (fault: string | undefined) => {
          cancel?.();
          open.delete(id);
          if (fault === undefined) resolve();
          else reject(new Error(`${ask}: ${fault}`));
        };
        const renew = () => {
          cancel?.();
          cancel = timers.after(timeoutOf(ask), () => end("no answer in time"));
        };
        renew();
        open.set(id, { onPart: ({ body, rows }, bytes) => onPart(decodeAnswer(ask, body, rows), bytes), end, renew });
        // The types of name and question belong together, which the compiler cannot see in a union.
        send({ type: "question", id, ask, body: question } as Message);
      });
    },
    onAnswer: (answer, bytes) => {
      const { id, isLast, fault, body } = answer;
      const call = open.get(id);
      // The answer to a call that was given up.
      if (call === undefined) return;
      if (fault !== undefined) return call.end(fault);
      if (body !== undefined) call.onPart(answer, bytes);
      if (isLast) call.end(undefined);
      else call.renew();
    },
    close: (reason) => {
      closed = reason;
      for (const call of [...open.values()]) call.end(reason);
    },
  };
}

/** Until the next part of the answer comes, milliseconds. */
function timeoutOf(ask: Ask): number {
  return ask === "versions" || ask === "items" || ask === "page" ? LONG_CALL_TIMEOUT_MS : SHORT_CALL_TIMEOUT_MS;
}

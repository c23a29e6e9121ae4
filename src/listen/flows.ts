/**
 * Answers of several messages, at the thread that sends them: each goes to its connection as it comes, and whoever makes them
 * hears what the client has taken.
 */
import { type FromSender, PART, type Part } from "./answer-frames.ts";

/** What whoever sends the messages of a long answer says of them. */
export type Flow = {
  /** The client's system has taken so many bytes of them. */
  readonly taken: (bytes: number) => void;
  /** The client has gone. Nothing more comes, and nothing more is to be said. */
  readonly gone: () => void;
};

/**
 * Called once, with the answer; undefined: there is none, and there will be none. Of an answer of several messages it is called
 * for each in turn, with a `flow`: PART.MORE until LAST, or until CUT says that the connection is to be closed.
 */
export type OnResolved = (answer: Uint8Array | undefined, part?: Part, flow?: Flow) => void;

export type Flows = {
  /** One of several messages. */
  readonly pass: (token: number, answer: Uint8Array, part: Part) => void;
  /** Those whose messages come from a thread that is no more get no others. */
  readonly cutAll: () => void;
};

const NO_BYTES = new Uint8Array(0);

/** `begun` gives whom a token's messages are for when the first comes, once; from then on whoever makes them looks at the times. */
export function createFlows(
  say: (message: FromSender) => void,
  begun: (token: number) => OnResolved | undefined,
): Flows {
  const flowing = new Map<number, { readonly onResolved: OnResolved; readonly flow: Flow }>();
  const begin = (token: number) => {
    const onResolved = begun(token);
    if (onResolved === undefined) return undefined;
    let isOver = false;
    const flow: Flow = {
      taken: (bytes) => {
        if (!isOver) say({ kind: "taken", token, bytes });
      },
      gone: () => {
        if (!isOver) say({ kind: "gone", token });
        isOver = true;
        flowing.delete(token);
      },
    };
    flowing.set(token, { onResolved, flow });
    return flowing.get(token);
  };
  const pass = (token: number, answer: Uint8Array, part: Part) => {
    const known = flowing.get(token) ?? begin(token);
    if (known === undefined) {
      if (part !== PART.CUT) say({ kind: "gone", token });
      return;
    }
    if (part !== PART.MORE) flowing.delete(token);
    known.onResolved(answer.length === 0 ? undefined : answer, part, known.flow);
  };
  return {
    pass,
    cutAll: () => {
      for (const token of [...flowing.keys()]) pass(token, NO_BYTES, PART.CUT);
    },
  };
}

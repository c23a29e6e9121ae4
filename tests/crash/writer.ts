/** One client of the crash test: takes step after step until the node breaks off, and knows what has to be there then. */
import assert from "node:assert/strict";
import type { Chance } from "../support/chance.ts";
import type { CrashAnswer, CrashClient } from "./client.ts";
import { nextStep, type Step } from "./steps.ts";
import { type Held, partOf, readRecords, type Touched } from "./verify.ts";
import { emptyModel, type Ids, type Model, modelText, recordKey } from "./world.ts";

type Sent = { readonly requestId: string; readonly step: Step };

export type Writer = {
  /** Ends when the node breaks off or `stopped` says so. */
  readonly run: (stopped: () => boolean) => Promise<void>;
  /**
   * Holds what is there against what was acknowledged, and takes it over. `logged` are the entries of the audit log by
   * request.
   */
  readonly verify: (held: Held, logged: ReadonlyMap<string, readonly string[]>) => void;
  /** Records that were changed since the last verification. */
  readonly touched: () => readonly Touched[];
  readonly counts: Counts;
};

export type Counts = { acknowledged: number; refused: number; unknown: number; unknownButMade: number };

type State = {
  model: Model;
  ids: Ids;
  /** Sent, and not answered. */
  pending: Sent | undefined;
  answered: (Sent & { readonly wasMade: boolean })[];
  touched: Touched[];
  number: number;
  readonly counts: Counts;
};

/** Status of a node that is short of something: nothing is changed, and the client may come again. */
const NOT_READY = 503;

export function createWriter(client: CrashClient, index: number, chance: Chance, sharedZone: string): Writer {
  const state: State = {
    model: emptyModel(),
    ids: { zones: new Map(), records: new Map(), users: new Map() },
    pending: undefined,
    answered: [],
    touched: [],
    number: 0,
    counts: { acknowledged: 0, refused: 0, unknown: 0, unknownButMade: 0 },
  };
  const next = () => ++state.number;
  return {
    run: async (stopped) => {
      while (!stopped()) {
        const { model, ids } = state;
        const step = nextStep({ client: index, chance, model, ids, next, sharedZone });
        if ((await take(client, state, `crash-${index}-${next()}`, step)) === "broken") return;
      }
    },
    verify: (held, logged) => verify(state, index, held, logged),
    touched: () => state.touched,
    counts: state.counts,
  };
}

async function take(client: CrashClient, state: State, requestId: string, step: Step): Promise<"answered" | "broken"> {
  const after = structuredClone(state.model);
  step.apply(after);
  state.touched.push(...difference(state.model, after), ...difference(after, state.model));
  state.pending = { requestId, step };
  const answer = await client.ask({ ...step.request, requestId });
  if (answer === undefined) return "broken";
  state.pending = undefined;
  const { method, path } = step.request;
  if (answer.status !== NOT_READY) {
    assert.equal(answer.status, step.status, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  }
  const wasMade = answer.status === 200;
  state.answered.push({ requestId, step, wasMade });
  if (!wasMade) {
    state.counts.refused++;
    return "answered";
  }
  state.counts.acknowledged++;
  state.model = after;
  await learnIds(client, state.ids, answer, step);
  return "answered";
}

/** Records that one model has and the other has not, or has otherwise. */
function difference(one: Model, other: Model): Touched[] {
  const found: Touched[] = [];
  for (const [zone, { records }] of one.zones) {
    for (const [key, { name, type }] of records) {
      if (other.zones.get(zone)?.records.has(key) !== true) found.push({ zone, name, type });
    }
  }
  return found;
}

async function learnIds(client: CrashClient, ids: Ids, { body }: CrashAnswer, { request }: Step): Promise<void> {
  if (request.path === "/zones/import") {
    for (const { zone, zone_id } of body.zones) {
      ids.zones.set(zone, zone_id);
      // The node may be gone by now: then nobody needs the ids.
      for (const record of (await readRecords(client, zone_id).catch(() => undefined)) ?? []) {
        ids.records.set(`${zone} ${recordKey(record.name, record.type)}`, record.id);
      }
    }
  } else if (request.method === "DELETE" || body.id === undefined) return;
  else if (body.username !== undefined) ids.users.set(body.username, body.id);
  else if (body.type === undefined) ids.zones.set(body.name, body.id);
  else ids.records.set(`${body.zone_name} ${recordKey(body.name, body.type)}`, body.id);
}

function verify(state: State, index: number, held: Held, logged: ReadonlyMap<string, readonly string[]>): void {
  const { answered, pending, counts } = state;
  const textOf = ({ request: { method, path, json } }: Step) =>
    `${method} ${path} ${JSON.stringify(json ?? "").slice(0, 300)}`;
  for (const { requestId, step, wasMade } of answered) {
    const expected = wasMade ? step.entries : [];
    assert.deepEqual(logged.get(requestId) ?? [], expected, `audit log of ${requestId}, ${textOf(step)}`);
  }
  if (pending !== undefined) {
    const { requestId, step } = pending;
    const entries = logged.get(requestId) ?? [];
    counts.unknown++;
    if (entries.length > 0) {
      counts.unknownButMade++;
      assert.deepEqual(entries, step.entries, `audit log of ${requestId}, which nobody acknowledged`);
      step.apply(state.model);
    }
  }
  const found = partOf(held, index);
  const lastWords = pending === undefined ? "" : `; without an answer: ${textOf(pending.step)}`;
  assert.equal(modelText(found.model), modelText(state.model), `what client ${index} wrote${lastWords}`);
  Object.assign(state, found, { pending: undefined, answered: [], touched: [] });
}

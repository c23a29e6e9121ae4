/**
 * Updates on their way to `control` and back. What a client sends again because it has not heard yet is not carried out twice.
 * Where the outcome does not come, the answer is SERVFAIL.
 */
import { RCODE } from "../dns/codes.ts";
import { clientKey } from "../listen/stream.ts";
import { UPDATE_JOINED_MAX, UPDATE_MS, UPDATES_OF_CLIENT_MAX, UPDATES_UNDER_WAY_MAX } from "../primary/limits.ts";
import type { FromPrimary } from "../primary/messages.ts";

export type UpdateRequest = Omit<Extract<FromPrimary, { readonly kind: "update" }>, "kind" | "id">;

export type UpdatesOptions = {
  /** False: there is nobody to tell. */
  readonly tell: (message: FromPrimary) => boolean;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
};

export type Updates = {
  /**
   * Calls `onRcode` once with the RCODE of the answer, or never where too many wait for it. Of equal texts of `sameness` that are
   * under way only the first is carried out; undefined: it is like no other.
   */
  readonly begin: (request: UpdateRequest, sameness: string | undefined, onRcode: (rcode: number) => void) => void;
  /** `control` says what an update came to. */
  readonly answered: (id: number, rcode: number) => void;
  /** Whoever carried them out is no more. */
  readonly failAll: () => void;
  /** To be called every second or so: ends what has taken too long. */
  readonly sweep: () => void;
  readonly underWay: () => number;
  /** Totals; see PrimaryFigures. */
  readonly counts: { readonly joined: number; readonly tooMany: number; readonly late: number };
};

type Update = {
  readonly client: string;
  readonly sameness: string | undefined;
  readonly sinceMs: number;
  readonly onRcode: ((rcode: number) => void)[];
};

export function createUpdates({ tell, now }: UpdatesOptions): Updates {
  /** By id, in the order in which they came. */
  const underWay = new Map<number, Update>();
  const bySameness = new Map<string, Update>();
  const ofClients = new Map<string, number>();
  const counts = { joined: 0, tooMany: 0, late: 0 };
  let lastId = 0;

  const end = (id: number, update: Update, rcode: number) => {
    underWay.delete(id);
    if (update.sameness !== undefined) bySameness.delete(update.sameness);
    const left = (ofClients.get(update.client) ?? 1) - 1;
    if (left > 0) ofClients.set(update.client, left);
    else ofClients.delete(update.client);
    for (const onRcode of update.onRcode) onRcode(rcode);
  };
  return {
    begin: (request, sameness, onRcode) => {
      const same = sameness === undefined ? undefined : bySameness.get(sameness);
      if (same !== undefined) {
        counts.joined += 1;
        if (same.onRcode.length <= UPDATE_JOINED_MAX) same.onRcode.push(onRcode);
        return;
      }
      const client = clientKey(request.address);
      const ofClient = ofClients.get(client) ?? 0;
      if (underWay.size >= UPDATES_UNDER_WAY_MAX || ofClient >= UPDATES_OF_CLIENT_MAX) {
        counts.tooMany += 1;
        return onRcode(RCODE.SERVFAIL);
      }
      lastId += 1;
      if (!tell({ kind: "update", id: lastId, ...request })) return onRcode(RCODE.SERVFAIL);
      const update: Update = { client, sameness, sinceMs: now(), onRcode: [onRcode] };
      underWay.set(lastId, update);
      ofClients.set(client, ofClient + 1);
      if (sameness !== undefined) bySameness.set(sameness, update);
    },
    answered: (id, rcode) => {
      const update = underWay.get(id);
      if (update !== undefined) end(id, update, rcode);
    },
    failAll: () => {
      for (const [id, update] of [...underWay]) end(id, update, RCODE.SERVFAIL);
    },
    sweep: () => {
      for (const [id, update] of [...underWay]) {
        if (now() - update.sinceMs < UPDATE_MS) return;
        counts.late += 1;
        end(id, update, RCODE.SERVFAIL);
      }
    },
    underWay: () => underWay.size,
    counts,
  };
}

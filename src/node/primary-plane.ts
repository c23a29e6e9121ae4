/**
 * What `control` does for updaters and secondaries: it tells the thread that answers them who may do what, carries updates out,
 * has zones encoded, and sends NOTIFY. Signatures and connections are that thread's.
 */
import { errorText } from "../base/errors.ts";
import { type Cidr, cidrFromText, ipToText } from "../base/ip.ts";
import type { Log } from "../base/log.ts";
import { readConfig } from "../commands/config-documents.ts";
import { applyUpdate, type UpdateOutcome } from "../commands/dynamic-update.ts";
import type { CommandContext } from "../commands/run.ts";
import { RCODE } from "../dns/codes.ts";
import { parseUpdate } from "../dns/update.ts";
import { setPrimary } from "../image/primary.ts";
import type { SharedImage } from "../image/shared.ts";
import type { NaturalKey } from "../model/objects.ts";
import { signingKey } from "../model/tsig-key.ts";
import type { FromPrimary, PrimaryFigures, PrimaryKey, PrimarySettings, ToPrimary } from "../primary/messages.ts";
import type { StorePublisher } from "../publish/store-publisher.ts";
import type { Store } from "../store/store.ts";
import { openDnsNotify } from "./dns-notify-plane.ts";
import { createLimitedLog } from "./limited-log.ts";
import type { NodeMetrics } from "./metrics.ts";
import {
  KEYS_PAGE,
  PREPARED_RECORDS_MAX,
  PREPARED_RECORDS_MIN,
  PUBLISHED_AT_ONCE,
  REFUSED_LINES_MAX,
  REFUSED_LINES_MS,
  UPDATE_PUBLISHED_MS,
  UPDATES_MAX,
} from "./primary-limits.ts";
import { observeUpdates, registerPrimary } from "./primary-metrics.ts";
import { createTransferPool, type TransferPool } from "./transfer-pool.ts";

export type PrimaryQuestion = Extract<FromPrimary, { readonly kind: "update" | "encode" }>;

/** The thread that answers updaters and secondaries, whichever runs: one that begins anew is sent the latest settings again. */
export type PrimaryEnd = {
  readonly sendPrimary: (settings: PrimarySettings) => void;
  /** Who answers what that thread asks. Until somebody does, it is told that this fails. */
  readonly onPrimary: (answer: (question: PrimaryQuestion) => Promise<ToPrimary>) => void;
  /** Undefined: nobody says. */
  readonly primaryFigures: () => Promise<PrimaryFigures | undefined>;
};

export type PrimaryPlaneOptions = {
  readonly context: CommandContext;
  readonly shared: SharedImage;
  readonly primary: PrimaryEnd;
  /** The node's data directory, which zones are read from for transfers. */
  readonly directory: string;
  readonly isMd5Enabled: boolean;
  readonly publisher: Pick<StorePublisher, "settled">;
  /** Resolves when the other nodes that are alive have what this one has, or after the time; absent without a cluster. */
  readonly replicated?: (timeoutMs: number) => Promise<void>;
  /** Resolves when this node has what others wrote while it was away, or after the time; absent without a cluster. */
  readonly caughtUp?: (timeoutMs: number) => Promise<void>;
  readonly metrics: Pick<NodeMetrics, "registry">;
};

/** Everything in the store answers already. What is closed takes no further questions; updates under way end with the store. */
export function openPrimaryPlane(options: PrimaryPlaneOptions): AsyncDisposable {
  const { context, primary, directory, publisher, metrics, isMd5Enabled } = options;
  const { store, log } = context;
  const closing = new AsyncDisposableStack();
  const pool = closing.use(createTransferPool({ directory, store }));
  closing.use(
    openDnsNotify({
      ...{ store, log, isMd5Enabled, caughtUp: options.caughtUp },
      // A secondary may ask another node, and must find there what it was told of.
      published: async () => {
        await publisher.settled();
        await options.replicated?.(readConfig(store, "axfr").effective.notify_debounce_seconds * 1_000);
      },
      registry: metrics.registry,
      // The secondary asks for the zone next.
      onAnnounced: (zone) => void pool.prepare(zone),
    }),
  );
  const updates = createUpdates(context, publisher, observeUpdates(metrics.registry));
  registerPrimary({ figures: primary.primaryFigures, pool, updatesUnderWay: updates.underWay }, metrics.registry);
  primary.onPrimary((question) =>
    question.kind === "update" ? updates.carryOut(question) : encoded(pool, question.id, question.zone),
  );
  closing.defer(followSettings(options, pool));
  return { [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

async function encoded(pool: TransferPool, id: number, zone: Uint8Array): Promise<ToPrimary> {
  return { kind: "encoded", id, zone: await pool.encode(zone) };
}

/** Sends the settings now and whenever something of them changes; the result ends that. */
function followSettings({ context, shared, primary, isMd5Enabled }: PrimaryPlaneOptions, pool: TransferPool) {
  const { store } = context;
  let areTransfersOn = false;
  const send = () => {
    const settings = primarySettings(store, isMd5Enabled);
    primary.sendPrimary(settings);
    setPrimary(shared, { updates: settings.updates.enabled, transfers: settings.transfers.enabled });
    pool.keepWarm(settings.transfers.enabled);
    if (settings.transfers.enabled && !areTransfersOn) void prepareLarge(store, pool);
    areTransfersOn = settings.transfers.enabled;
  };
  const end = store.onChange(({ changes }) => {
    if (changes.some(({ kind, key }) => kind === "tsig-key" || (kind === "config" && isPrimaryConfig(key)))) send();
  });
  send();
  return end;
}

/** Has large zones encoded one after the other, so that the first secondary finds them ready. Never rejects. */
async function prepareLarge(store: Pick<Store, "list" | "count">, pool: TransferPool): Promise<void> {
  let left = PREPARED_RECORDS_MAX;
  let after: NaturalKey | undefined;
  do {
    const page = store.list("zone", { limit: KEYS_PAGE, ...(after !== undefined && { after }) });
    for (const { body } of page) {
      const records = store.count("record", body.name);
      if (records < PREPARED_RECORDS_MIN || records > left) continue;
      left -= records;
      await pool.prepare(body.name);
      if (pool.isClosed()) return;
    }
    after = page.at(-1)?.key;
  } while (after !== undefined);
}

function isPrimaryConfig([name]: NaturalKey): boolean {
  return name === "axfr" || name === "dynamic-dns";
}

/** Who may do what, as the store has it. Keys whose algorithm this node does not take are not there. */
function primarySettings(store: Pick<Store, "get" | "list">, isMd5Enabled: boolean): PrimarySettings {
  const axfr = readConfig(store, "axfr").effective;
  const updates = readConfig(store, "dynamic-dns").effective;
  return {
    keys: [...primaryKeys(store, isMd5Enabled)],
    transfers: { enabled: axfr.enabled, allowNetworks: axfr.allow_networks.flatMap(network) },
    updates: { enabled: updates.enabled, unsignedNetworks: updates.allow_unsigned_networks.flatMap(network) },
  };
}

function network(text: string): readonly Cidr[] {
  const cidr = cidrFromText(text);
  return cidr === undefined ? [] : [cidr];
}

function* primaryKeys(store: Pick<Store, "list">, isMd5Enabled: boolean): Generator<PrimaryKey> {
  let after: NaturalKey | undefined;
  for (;;) {
    const page = store.list("tsig-key", { limit: KEYS_PAGE, ...(after !== undefined && { after }) });
    for (const { body } of page) {
      const key = signingKey(body, isMd5Enabled);
      if (key === undefined) continue;
      const grants = body.grants?.map(({ zone, transfer }) => ({ zone, transfer: transfer === true }));
      yield { ...key, grants, hasManagementView: body.management_view };
    }
    after = page.at(-1)?.key;
    if (after === undefined) return;
  }
}

type UpdateQuestion = Extract<PrimaryQuestion, { readonly kind: "update" }>;

/** Carries updates out, those of one zone in the order in which they came: transactions of the store keep theirs. */
function createUpdates(
  context: CommandContext,
  publisher: PrimaryPlaneOptions["publisher"],
  observe: (outcome: UpdateOutcome, seconds: number) => void,
) {
  const complain = createComplaints(context.log);
  let underWay = 0;
  const rcodeOf = async ({ keyName, address, message }: UpdateQuestion): Promise<number> => {
    const sender = { ...(keyName !== undefined && { keyName }), address: ipToText(address) };
    const sinceMs = performance.now();
    const update = parseUpdate(message);
    const outcome: UpdateOutcome =
      update.kind === "refused" ? { ...update, recordsChanged: 0 } : await applyUpdate(context, sender, update);
    if (outcome.recordsChanged > PUBLISHED_AT_ONCE) await publishedInTime(publisher);
    observe(outcome, (performance.now() - sinceMs) / 1_000);
    if (outcome.detail !== "") complain(outcome, sender.keyName ?? "", sender.address);
    return outcome.rcode;
  };
  return {
    underWay: () => underWay,
    /** Never rejects. */
    carryOut: async (question: UpdateQuestion): Promise<ToPrimary> => {
      const { id } = question;
      if (underWay >= UPDATES_MAX) return { kind: "updated", id, rcode: RCODE.SERVFAIL };
      underWay += 1;
      try {
        return { kind: "updated", id, rcode: await rcodeOf(question) };
      } catch (error) {
        complain(
          { rcode: RCODE.SERVFAIL, detail: errorText(error) },
          question.keyName ?? "",
          ipToText(question.address),
        );
        return { kind: "updated", id, rcode: RCODE.SERVFAIL };
      } finally {
        underWay -= 1;
      }
    },
  };
}

/** It is durable: where publishing has much to do, the client is not kept until it gives up. */
async function publishedInTime({ settled }: PrimaryPlaneOptions["publisher"]): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, UPDATE_PUBLISHED_MS);
  await Promise.race([settled(), late]);
  clearTimeout(timer);
}

/** One line an update that is not carried out, so many in a while: anybody may send them. */
function createComplaints(log: Log) {
  const limited = createLimitedLog({
    ...{ log, linesMax: REFUSED_LINES_MAX, whileMs: REFUSED_LINES_MS },
    leftOut: { message: "updates that were not carried out and are not in the log", field: "updates" },
    now: () => performance.now(),
  });
  return ({ rcode, detail }: Pick<UpdateOutcome, "rcode" | "detail">, key: string, address: string) =>
    limited("info", `an update was not carried out: ${detail}`, { rcode, address, ...(key !== "" && { key }) });
}

/** The first sync of a store with many records: how long, what both nodes answer meanwhile, and how long either control thread is held. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterNode, startClusterNode } from "../cluster/cluster-world.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import {
  dnsPortOf,
  figureOf,
  fillClusterStore,
  ms,
  type Row,
  row,
  timesText,
  turnWatch,
  watchNodes,
  zoneAt,
} from "./cluster-lab.ts";

const SYNC_MAX_S = 20;
const HELD_MAX_MS = 50;
const DNS_P99_MAX_MS = 2;
const QUIET_MS = 5_000;
const WAIT_MS = 300_000;
const ANSWER_WAIT_MS = 5_000;
const NXDOMAIN = 3;
const TYPE_A = 1;
const MIB = 2 ** 20;

export async function measureClusterSync(directory: string, records: number): Promise<Row[]> {
  const home = await mkdtemp(join(directory, "sync-"));
  const rows: Row[] = [];
  try {
    await fillClusterStore(join(home, "a"), "a", records);
    const [turnsOfGiver, turnsOfTaker] = [turnWatch(home, "a"), turnWatch(home, "b")];
    await using giver = await startClusterNode({ id: "a", directory: join(home, "a"), env: turnsOfGiver.env });
    const name = `host0.${zoneAt(0, records).slice(0, -1)}`;
    const endQuiet = await watchNodes([{ node: giver, name }]);
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    const [quiet] = await endQuiet();
    const endGiver = await watchNodes([{ node: giver, name }]);
    const sinceMs = Date.now();
    await using taker = await startClusterNode({
      ...{ id: "b", directory: join(home, "b"), env: turnsOfTaker.env },
      join: [giver.peers],
    });
    const [began, startedMs] = [performance.now(), Date.now()];
    const cpu = [giver.child.cpu(), taker.child.cpu()];
    const last = lastOf(records);
    const endTaker = await watchNodes([{ node: taker, name: last }]);
    await waitFor("it has everything", WAIT_MS, () => hasSynced(taker), 100);
    const tookS = (performance.now() - began) / 1_000;
    const used = [giver, taker].map(({ child }, at) => {
      const { userMs, systemMs } = child.cpu();
      return (userMs + systemMs - (cpu[at]?.userMs ?? 0) - (cpu[at]?.systemMs ?? 0)) / 1_000;
    });
    await waitFor("it is ready", WAIT_MS, async () => (await taker.get("/readyz")).status === 200, 20);
    const readyS = (performance.now() - began) / 1_000;
    const atReady = await rcodeOf(dnsPortOf(taker), last);
    await waitFor("it answers", WAIT_MS, async () => (await rcodeOf(dnsPortOf(taker), last)) === 0, 20);
    const answeredS = (performance.now() - began) / 1_000;
    const [meanwhile] = await endGiver();
    const [taken] = await endTaker();
    const wrong = taken?.rcodes[NXDOMAIN] ?? 0;
    const items = await figureOf(taker, "svc_replication_first_sync_items_total");
    const held = await turnsOfGiver.longestMs(sinceMs);
    rows.push(
      row(
        `first sync of ${records.toLocaleString("en")} records`,
        `under ${SYNC_MAX_S} s`,
        `${tookS.toFixed(1)} s, ${items.toLocaleString("en")} items; processor ${used.map((each) => each.toFixed(1)).join(" and ")} s`,
        tookS < SYNC_MAX_S,
      ),
      row("until the new node is ready, and answers all", "-", `${readyS.toFixed(1)} and ${answeredS.toFixed(1)} s`),
      row("NXDOMAIN for a record that has not come yet", "none", `${wrong}`, wrong === 0),
      row("the last record when the new node is ready", "NOERROR", `rcode ${atReady}`, atReady === 0),
      row(
        "longest turn of the giving node's control thread",
        `at most ${HELD_MAX_MS} ms`,
        `${ms(held)} ms of processor, of the new node ${ms(await turnsOfTaker.longestMs(startedMs))} ms`,
        held <= HELD_MAX_MS,
      ),
      row(
        "requests of the giving node's control thread, p50 / p99 / longest",
        "-",
        `${timesText(meanwhile?.controlMs ?? NONE)}; before ${timesText(quiet?.controlMs ?? NONE)}`,
      ),
      row(
        "DNS of the giving node, p50 / p99 / longest",
        `p99 under ${DNS_P99_MAX_MS} ms`,
        `${timesText(meanwhile?.dnsMs ?? NONE)}, ${meanwhile?.lost} lost; before ${timesText(quiet?.dnsMs ?? NONE)}`,
        (meanwhile?.dnsMs[1] ?? Number.NaN) < DNS_P99_MAX_MS,
      ),
      row(
        "memory of both afterwards",
        "-",
        `${[giver, taker].map(({ child }) => (child.residentBytes() / MIB).toFixed(0)).join(" and ")} MiB`,
      ),
    );
    return rows;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** By its readiness: all metrics take the new node 9 ms each time. */
async function hasSynced(node: ClusterNode): Promise<boolean> {
  const { components } = JSON.parse(await (await node.get("/readyz")).text());
  return components.initial_sync.ready === true;
}

const NONE = [Number.NaN, Number.NaN, Number.NaN] as const;

/** The record of the largest zone that comes after all others of it: the greatest number of nines only that is there. */
function lastOf(records: number): string {
  let nines = "9";
  while (Number(`${nines}9`) < records / 2) nines += "9";
  return `host${nines}.large.test`;
}

/** Undefined where nothing came. */
async function rcodeOf(port: number, name: string): Promise<number | undefined> {
  const response = await exchangeUdp({ port }, encodeQuery({ name, type: TYPE_A }), ANSWER_WAIT_MS);
  return response && decodeMessage(response).rcode;
}

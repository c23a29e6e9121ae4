/**
 * Reads of the API with a million records stored: one record by id, pages of 500, over TLS and keep-alive. By hand:
 * `node tests/bench/api-reads.ts [RECORDS]`.
 */
import { performance } from "node:perf_hooks";
import { recordRoutes } from "../../src/api/routes/records.ts";
import { zoneRoutes } from "../../src/api/routes/zones.ts";
import { startApi, type TestApi } from "../support/api.ts";
import { ALONE } from "../support/commands.ts";

const RECORDS = Number(process.argv[2] ?? 1_000_000);
const ZONES = 20;
const BATCH = 5_000;
const PAGE = 500;
const WARM_UP = 200;

function recordAt(zone: string, index: number) {
  return {
    id: `rec_${zone}${index}`,
    zone,
    name: `host-${index}.department-${index % 97}`,
    type: "A" as const,
    ttl: 300,
    values: [{ value: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}` }],
    protected: false,
    auto_populate: false,
  };
}

/** Zones and records straight into the store: what is measured is reading. */
async function fill(api: TestApi): Promise<readonly string[]> {
  const zoneIds: string[] = [];
  for (let zone = 0; zone < ZONES; zone++) {
    const name = `zone-${zone}.bench.`;
    const { body } = await api.ask("POST", "/zones", { json: { name } });
    zoneIds.push(body.id);
    const count = Math.ceil(RECORDS / ZONES);
    for (let start = 0; start < count; start += BATCH) {
      await api.store.write((tx) => {
        const end = Math.min(start + BATCH, count);
        for (let index = start; index < end; index++) tx.put("record", recordAt(name, index));
      });
    }
  }
  return zoneIds;
}

async function measure(name: string, count: number, clients: number, ask: (turn: number) => Promise<unknown>) {
  for (let turn = 0; turn < WARM_UP; turn++) await ask(turn);
  const times: number[] = [];
  let turn = 0;
  const client = async () => {
    while (turn < count) {
      const mine = turn++;
      const start = performance.now();
      await ask(mine);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  const [p50Ms, p99Ms, maxMs] = [at(0.5), at(0.99), at(1)];
  process.stdout.write(
    `${name.padEnd(44)} n=${times.length}  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms  max ${maxMs.toFixed(2)} ms\n`,
  );
}

await using api = await startApi((context) => [...zoneRoutes(context, ALONE), ...recordRoutes(context)]);
const began = performance.now();
const zoneIds = await fill(api);
const rssMb = Math.round(process.memoryUsage().rss / 2 ** 20);
process.stdout.write(
  `${api.store.count("record")} records in ${ZONES} zones, filled in ${((performance.now() - began) / 1000).toFixed(1)} s, RSS ${rssMb} MB\n`,
);

const perZone = Math.ceil(RECORDS / ZONES);
const spread = (turn: number, limit: number) => (turn * 7919) % limit;
const expectOk = async (path: string) => {
  const reply = await api.ask("GET", path);
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text.slice(0, 200)}`);
  return reply;
};
const readOne = (turn: number) => expectOk(`/records/rec_zone-${spread(turn, ZONES)}.bench.${spread(turn, perZone)}`);
await measure("GET /records/{id}, 1 client", 5_000, 1, readOne);
await measure("GET /records/{id}, 4 clients", 5_000, 4, readOne);

/** Pages that follow each other through a zone, so that deep cursors are measured too. */
const cursors = zoneIds.map((): string | null => null);
const readPage = async (turn: number) => {
  const zone = spread(turn, ZONES);
  const cursor = cursors[zone];
  const { body } = await expectOk(
    `/zones/${zoneIds[zone]}/records?limit=${PAGE}${cursor === null || cursor === undefined ? "" : `&cursor=${cursor}`}`,
  );
  cursors[zone] = body.next_cursor;
};
await measure("GET page of 500, 1 client", 500, 1, readPage);
await measure("GET /zones", 200, 1, () => expectOk("/zones"));
await measure("GET by name among 50,000", 500, 1, (turn) =>
  expectOk(`/zones/${zoneIds[0]}/records?name=host-${spread(turn, perZone)}.department-${spread(turn, perZone) % 97}`),
);

const before = process.memoryUsage().rss;
const listBegan = performance.now();
const whole = await expectOk(`/zones/${zoneIds[1]}/records`);
process.stdout.write(
  `whole list of ${whole.body.items.length} records: ${(performance.now() - listBegan).toFixed(0)} ms, ${(whole.text.length / 2 ** 20).toFixed(1)} MB, RSS +${Math.round((process.memoryUsage().rss - before) / 2 ** 20)} MB (client included)\n`,
);

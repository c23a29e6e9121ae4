/** Creates and reads through the REST APIs of Signpost and PowerDNS, beside each other. */
import { ADMIN_PASSWORD, startNode } from "../scenarios/running-node.ts";
import { startPowerdns } from "../support/peers/powerdns.ts";
import type { Child } from "../support/process.ts";
import { type ApiPool, type ApiRequest, type ApiTarget, type Figures, forSeconds, load, openPool } from "./api-load.ts";
import { markdown, median } from "./table.ts";

const CLIENTS = 16;
const WARM_UP_SECONDS = 1;
const ZONE = "bench.test.";
/** Records of the zone before the first create. */
const ZONE_RECORDS = 1_000;
/** A list that both give in one answer: PowerDNS has no pages. */
const SMALL_ZONE = "small.test.";
const SMALL_ZONE_RECORDS = 500;
const CHUNK = 2_500;

type Api = {
  readonly name: string;
  readonly child: Child;
  readonly target: ApiTarget;
  readonly create: (turn: number) => ApiRequest;
  readonly readOne: (turn: number) => ApiRequest;
  readonly list: () => ApiRequest;
  readonly stop: () => Promise<void>;
};

type Workload = {
  readonly title: string;
  readonly request: "create" | "readOne" | "list";
  readonly clients: number;
  /** Addresses of this benchmark that the body of an answer holds: a server that fails fast must not win. */
  readonly answers: number;
};

/** Writers of one client too: several of them find PowerDNS's SQLite locked by each other. */
const WORKLOADS: readonly Workload[] = [
  { title: `create a record, ${CLIENTS} clients`, request: "create", clients: CLIENTS, answers: 0 },
  { title: "create a record, 1 client", request: "create", clients: 1, answers: 0 },
  { title: `read a record, ${CLIENTS} clients`, request: "readOne", clients: CLIENTS, answers: 1 },
  { title: `list a zone of ${SMALL_ZONE_RECORDS}`, request: "list", clients: CLIENTS, answers: SMALL_ZONE_RECORDS },
];

type ApiSample = Figures & { readonly cpuUs: number; readonly failures: number };
type ApiSeries = { readonly workload: Workload; readonly server: string; readonly samples: readonly ApiSample[] };

function addressAt(turn: number): string {
  return `10.${(turn >> 16) & 255}.${(turn >> 8) & 255}.${turn & 255}`;
}

/** The token of a new session of the first admin, who may then ask as often as he likes. */
export async function signInTo(api: string, connections: number): Promise<ApiTarget> {
  const headers = { "x-svc-csrf": "1" };
  await using pool = openPool({ url: api, headers }, 1);
  const credentials = JSON.stringify({ username: "admin", password: ADMIN_PASSWORD });
  const login = await pool.ask({ method: "POST", path: "/api/v1/auth/login", body: credentials });
  const target = { url: api, headers: { ...headers, authorization: `Bearer ${JSON.parse(login).access_token}` } };
  await using signedIn = openPool(target, connections);
  const limits = { auth: 10_000_000, upload: 10_000_000, write: 10_000_000, read: 10_000_000 };
  await signedIn.ask({ method: "PUT", path: "/api/v1/config/rate-limits", body: JSON.stringify(limits) });
  return target;
}

async function startSignpostApi(): Promise<Api> {
  const node = await startNode({ zones: [] });
  const target = await signInTo(node.api, 1);
  await using pool = openPool(target, 1);
  const recordsOf = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      name: `host${index}`,
      type: "A",
      ttl: 300,
      values: [{ value: addressAt(index) }],
    }));
  const zones = [
    { name: ZONE, records: recordsOf(ZONE_RECORDS) },
    { name: SMALL_ZONE, records: recordsOf(SMALL_ZONE_RECORDS) },
  ];
  const made = await pool.ask({ method: "POST", path: "/api/v1/zones/import", body: JSON.stringify({ zones }) });
  const [zone, small] = JSON.parse(made).zones.map(({ zone_id }: { readonly zone_id: string }) => zone_id);
  const { items } = JSON.parse(await pool.ask({ method: "GET", path: `/api/v1/zones/${zone}/records` }));
  const ids: string[] = items.map(({ id }: { readonly id: string }) => id);
  return {
    name: "signpost",
    child: node.child,
    target,
    create: (turn) => ({
      method: "POST",
      path: `/api/v1/zones/${zone}/records`,
      body: JSON.stringify({ name: `new${turn}`, type: "A", ttl: 300, values: [{ value: addressAt(turn) }] }),
    }),
    readOne: (turn) => ({ method: "GET", path: `/api/v1/records/${ids[(turn * 7919) % ids.length]}` }),
    list: () => ({ method: "GET", path: `/api/v1/zones/${small}/records` }),
    stop: () => node[Symbol.asyncDispose](),
  };
}

async function startPowerdnsApi(backend: "sqlite" | "lmdb"): Promise<Api | undefined> {
  const server = await startPowerdns(backend);
  if (server === undefined) return undefined;
  const target = { url: server.api, headers: { "x-api-key": server.key } };
  await using pool = openPool(target, 1);
  const zones = "/api/v1/servers/localhost/zones";
  const rrsetAt = (zone: string, name: string, turn: number) => ({
    name: `${name}${turn}.${zone}`,
    type: "A",
    ttl: 300,
    changetype: "REPLACE",
    records: [{ content: addressAt(turn), disabled: false }],
  });
  const patch = (zone: string, rrsets: readonly object[]): ApiRequest => ({
    method: "PATCH",
    path: `${zones}/${zone}`,
    body: JSON.stringify({ rrsets }),
  });
  const fill = async (zone: string, count: number) => {
    const body = JSON.stringify({ name: zone, kind: "Native", nameservers: [`ns1.${zone}`] });
    await pool.ask({ method: "POST", path: zones, body });
    for (let from = 0; from < count; from += CHUNK) {
      const size = Math.min(CHUNK, count - from);
      await pool.ask(
        patch(
          zone,
          Array.from({ length: size }, (_, index) => rrsetAt(zone, "host", from + index)),
        ),
      );
    }
  };
  await fill(ZONE, ZONE_RECORDS);
  await fill(SMALL_ZONE, SMALL_ZONE_RECORDS);
  return {
    name: `powerdns ${backend}`,
    child: server.child,
    target,
    create: (turn) => patch(ZONE, [rrsetAt(ZONE, "new", turn)]),
    readOne: (turn) => {
      const name = `host${(turn * 7919) % ZONE_RECORDS}.${ZONE}`;
      return { method: "GET", path: `${zones}/${ZONE}?rrset_name=${name}&rrset_type=A` };
    },
    list: () => ({ method: "GET", path: `${zones}/${SMALL_ZONE}` }),
    stop: server.stop,
  };
}

async function measure(api: Api, pool: ApiPool, workload: Workload, seconds: number, next: () => number) {
  const { clients, request, answers } = workload;
  const before = api.child.cpu();
  const failedBefore = pool.failures();
  const figures = await load(clients, forSeconds(seconds), async () => {
    const text = await pool.ask(api[request](next()));
    if (text.split('"10.').length - 1 < answers) throw new Error(`${api.name}: not what was asked for: ${text}`);
  });
  const after = api.child.cpu();
  const usedMs = after.userMs + after.systemMs - before.userMs - before.systemMs;
  return { ...figures, cpuUs: (usedMs * 1000) / figures.requests, failures: pool.failures() - failedBefore };
}

/** Ours twice: the second time with a connection for each request, which is how PowerDNS ends every answer. */
async function startApis(): Promise<readonly Api[]> {
  const signpost = await startSignpostApi();
  const alone: ApiTarget = { ...signpost.target, isEachAlone: true };
  const apis = [signpost, { ...signpost, name: "signpost, each alone", target: alone, stop: async () => undefined }];
  for (const backend of ["sqlite", "lmdb"] as const) {
    const powerdns = await startPowerdnsApi(backend);
    if (powerdns === undefined)
      console.error("SKIPPED: pdns_server is not installed; .ci/run names its Debian package");
    else apis.push(powerdns);
  }
  return apis;
}

export async function measureApiPeers(rounds: number, seconds: number): Promise<string> {
  const apis = await startApis();
  const all: ApiSeries[] = [];
  let turn = 0;
  const next = () => turn++;
  const pools = apis.map(({ target }) => openPool(target, CLIENTS));
  try {
    for (const workload of WORKLOADS) {
      const samples = apis.map((): ApiSample[] => []);
      for (let round = 0; round <= rounds; round++) {
        for (const [index, api] of apis.entries()) {
          const pool = pools[index];
          if (pool === undefined) continue;
          const sample = await measure(api, pool, workload, round === 0 ? WARM_UP_SECONDS : seconds, next);
          console.error(`${workload.title}, round ${round}: ${api.name} ${sample.perSecond.toFixed(0)}/s`);
          if (round > 0) samples[index]?.push(sample);
        }
      }
      all.push(...apis.map(({ name }, index) => ({ workload, server: name, samples: samples[index] ?? [] })));
    }
  } finally {
    for (const pool of pools) await pool[Symbol.asyncDispose]();
    for (const api of apis) await api.stop();
  }
  return renderApiTable(all);
}

function renderApiTable(all: readonly ApiSeries[]): string {
  const heading = [
    "workload",
    "server",
    "requests/s",
    "p50 ms",
    "p99 ms",
    "CPU us a request",
    "answers 500",
    "requests/s vs sqlite / lmdb",
  ];
  const perSecond = ({ samples }: ApiSeries) => median(samples.map((sample) => sample.perSecond));
  const rows = all.map((series) => {
    const figure = (read: (sample: ApiSample) => number) => median(series.samples.map(read));
    const ratios = ["powerdns sqlite", "powerdns lmdb"].map((server) => {
      const other = all.find((one) => one.workload === series.workload && one.server === server);
      return other === undefined ? "-" : (perSecond(series) / perSecond(other)).toFixed(2);
    });
    return [
      series.workload.title,
      series.server,
      Math.round(perSecond(series)).toLocaleString("en"),
      figure(({ p50Ms }) => p50Ms).toFixed(2),
      figure(({ p99Ms }) => p99Ms).toFixed(2),
      figure(({ cpuUs }) => cpuUs).toFixed(0),
      String(series.samples.reduce((sum, { failures }) => sum + failures, 0)),
      ratios.join(" / "),
    ];
  });
  return markdown(heading, rows);
}

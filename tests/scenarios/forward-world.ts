/** What scenarios of forwarding have in common: a node, a scripted upstream behind it, and answers in the words of `dig`. */
import assert from "node:assert/strict";
import { nameToText } from "../../src/dns/name.ts";
import { rdataToText } from "../../src/dns/rdata.ts";
import { typeFromText, typeToText } from "../../src/dns/type-names.ts";
import { type DnsClient, exchangeTcp, openUdpClient } from "../support/dns-client.ts";
import { type DecodedRecord, decodeMessage, encodeQuery } from "../support/dns-message.ts";
import { type Handler, tableHandler } from "../support/scripted-replies.ts";
import { type ScriptedUpstream, startScriptedUpstream, type UpstreamOptions } from "../support/scripted-upstream.ts";
import { type ApiAnswer, type ApiClient, signIn } from "./api-client.ts";
import { create } from "./notify-world.ts";
import { type NodeSetup, PATIENT_MAIN, type ScenarioNode, startNode } from "./running-node.ts";

export const ZONE = "own.test.";

const FLAGS = { aa: 0x400, tc: 0x200, rd: 0x100, ra: 0x80, ad: 0x20, cd: 0x10 } as const;
const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
const EDE_OPTION = 15;

export type Asking = {
  /** Without it RD is set. */
  readonly rd?: false;
  readonly cd?: true;
  readonly dnssecOk?: true;
  /** The local address that asks. */
  readonly from?: string;
  readonly tcp?: true;
  readonly timeoutMs?: number;
};

export type Answer = {
  readonly rcode: string;
  /** Those that are set, such as "rd ra". */
  readonly flags: string;
  /** `owner ttl type rdata`, in order. */
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  /** As `answer` without TTLs. */
  readonly data: readonly string[];
  readonly ttls: readonly number[];
  /** From the question to the answer, rounded up: a clock may have moved on by so many seconds since the upstream answered. */
  readonly seconds: number;
  /** Extended DNS Error, where there is one. */
  readonly ede: number | undefined;
};

export type Forwarding = AsyncDisposable & {
  readonly node: ScenarioNode;
  readonly api: ApiClient;
  readonly upstream: ScriptedUpstream;
  readonly zoneId: string;
  /** "NAME TYPE". Fails where no answer comes. */
  readonly ask: (question: string, how?: Asking) => Promise<Answer>;
  /** As `ask`; undefined where no answer comes within `timeoutMs`. */
  readonly tryAsk: (question: string, how?: Asking) => Promise<Answer | undefined>;
  /** A record of the zone; gives its id. */
  readonly record: (json: object) => Promise<string>;
  /** A request that must be answered with 200. */
  readonly put: (path: string, json: object) => Promise<ApiAnswer["body"]>;
  /** Names that the upstream was asked for, in lower case, with their types. */
  readonly asked: () => readonly string[];
};

function recordText({ owner, type, rdata }: DecodedRecord): readonly [string, string] {
  return [owner, `${typeToText(type)} ${rdataToText(type, Buffer.from(rdata, "hex"))}`];
}

function answerOf(response: Buffer, askedMs: number): Answer {
  const { rcode, flags, answer, authority, edns } = decodeMessage(response);
  const lines = (records: readonly DecodedRecord[], withTtl: boolean) =>
    records.map((record) => {
      const [owner, rest] = recordText(record);
      return withTtl ? `${owner} ${record.ttl} ${rest}` : `${owner} ${rest}`;
    });
  const ede = edns?.options.find(({ code }) => code === EDE_OPTION)?.data;
  return {
    rcode: RCODES[rcode] ?? String(rcode),
    flags: Object.entries(FLAGS)
      .filter(([, bit]) => (flags & bit) !== 0)
      .map(([name]) => name)
      .join(" "),
    answer: lines(answer, true),
    authority: lines(authority, true),
    data: lines(answer, false),
    ttls: answer.map(({ ttl }) => ttl),
    seconds: Math.ceil((performance.now() - askedMs) / 1_000),
    ede: ede === undefined ? undefined : Buffer.from(ede).readUInt16BE(0),
  };
}

export type ForwardingSetup = NodeSetup & {
  /** What the upstream says; default: what `table` has. */
  readonly handler?: Handler;
  readonly table?: string;
  readonly upstream?: Omit<UpstreamOptions, "handler">;
  /** False: the default forwarder is left disabled. */
  readonly forwards?: false;
  /** For tests that count what upstreams are asked; see PATIENT_MAIN. */
  readonly isPatient?: true;
  /** One that runs already, and goes on to. */
  readonly node?: ScenarioNode;
};

/** A node whose default forwarder is the scripted upstream, and which holds ZONE. */
export async function startForwarding(setup: ForwardingSetup = {}): Promise<Forwarding> {
  const { handler = tableHandler(setup.table ?? ""), upstream: options, forwards, isPatient, ...nodeSetup } = setup;
  await using undo = new AsyncDisposableStack();
  const upstream = undo.use(await startScriptedUpstream({ ...options, handler }));
  const node =
    setup.node ?? undo.use(await startNode({ zones: [], ...(isPatient ? { main: PATIENT_MAIN } : {}), ...nodeSetup }));
  const api = undo.use(await signIn(node.api));
  const stored = (await api.ask("GET", "/zones")).body.items.find(({ name }: { name: string }) => name === ZONE);
  const zoneId: string = stored?.id ?? (await create(api, "/zones", { name: ZONE }));
  const world = forwardingOf(node, api, upstream, zoneId, undo);
  if (forwards !== false) await forwardTo(world, [`127.0.0.1:${upstream.port}`]);
  const kept = undo.move();
  return { ...world, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** An answer that was asked for anew has the TTLs that it was given, less what has passed since. */
export function assertTtls({ ttls, seconds }: Answer, expected: readonly number[]): void {
  assert.equal(ttls.length, expected.length);
  for (const [index, ttl] of ttls.entries()) {
    const whole = expected[index] ?? 0;
    assert.ok(ttl <= whole && ttl >= whole - seconds, `${ttl} of ${whole} s, ${seconds} s after the question`);
  }
}

/** Sets the default forwarder. */
export async function forwardTo(world: Pick<Forwarding, "put">, upstreams: readonly string[]): Promise<void> {
  await world.put("/forwarders/default", { upstreams, enabled: true });
}

function forwardingOf(
  node: ScenarioNode,
  api: ApiClient,
  upstream: ScriptedUpstream,
  zoneId: string,
  undo: AsyncDisposableStack,
): Omit<Forwarding, typeof Symbol.asyncDispose> {
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const clients = new Map<string, Promise<DnsClient>>();
  undo.defer(async () => {
    for (const client of clients.values()) (await client).close();
  });
  const clientFrom = (from: string) => {
    const client = clients.get(from) ?? openUdpClient(endpoint, from);
    clients.set(from, client);
    return client;
  };
  const tryAsk: Forwarding["tryAsk"] = async (question, how = {}) => {
    const [name = "", typeText = "A"] = question.split(" ");
    const flags = (how.rd === false ? 0 : FLAGS.rd) | (how.cd === true ? FLAGS.cd : 0);
    const type = typeFromText(typeText);
    assert.ok(type !== undefined, typeText);
    const askedMs = performance.now();
    const query = encodeQuery({ name, type, flags, edns: { dnssecOk: how.dnssecOk === true } });
    if (how.tcp === true) {
      const response = await exchangeTcp(endpoint, query, how.timeoutMs ?? 20_000);
      return response === undefined ? undefined : answerOf(response, askedMs);
    }
    const response = await (await clientFrom(how.from ?? "127.0.0.1")).ask(query, how.timeoutMs);
    return response === undefined ? undefined : answerOf(response, askedMs);
  };
  return {
    node,
    api,
    upstream,
    zoneId,
    tryAsk,
    ask: async (question, how) => {
      const answer = await tryAsk(question, how);
      assert.ok(answer !== undefined, `${question} is answered`);
      return answer;
    },
    record: (json) => create(api, `/zones/${zoneId}/records`, { ttl: 300, ...json }),
    put: async (path, json) => {
      const { status, body } = await api.ask("PUT", path, json);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    asked: () => upstream.queries.map(({ name, type }) => `${name.toLowerCase()} ${type}`),
  };
}

/** The text of a wire name, for those who look at what arrived. */
export const textOf = nameToText;

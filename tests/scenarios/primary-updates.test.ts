/** Dynamic updates of a running node: who may change what, what stays as it was, and what the audit log says of it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CLASS, OPCODE, RCODE, RRTYPE } from "../../src/dns/codes.ts";
import { encodeMessage, type ResourceRecord } from "../../src/dns/message.ts";
import { nameFromText } from "../../src/dns/name.ts";
import { rdataFromText } from "../../src/dns/rdata.ts";
import { signRequest, type TsigKey, verifyResponse } from "../../src/dns/tsig.ts";
import { openTcpClient, openUdpClient } from "../support/dns-client.ts";
import { type ApiClient, signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { create, figure, untilFigure } from "./notify-world.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const ZONE = "corp.test.";
const ALLOWED = "127.0.0.2";
const FULL = keyOf("full.", 1);
const ACME = keyOf("acme.", 2);
const NONE = keyOf("none.", 3);

let node: ScenarioNode;
let api: ApiClient;
let zoneId: string;

before(async () => {
  node = await startNode({ zones: [] });
  api = await signIn(node.api);
  zoneId = await create(api, "/zones", { name: ZONE });
  const acme = { zone: ZONE, names: ["_acme-challenge", "_acme-challenge.*"], types: ["TXT"], update: true };
  for (const [key, grants] of [
    [FULL, undefined],
    [ACME, [acme]],
    [NONE, []],
  ] as const) {
    const secret = Buffer.from(key.secret).toString("base64");
    const name = key === FULL ? "full." : key === ACME ? "acme." : "none.";
    await create(api, "/tsig-keys", { name, algorithm: key.algorithm, secret, ...(grants && { grants }) });
  }
  await settings({ enabled: true, allow_unsigned_networks: [`${ALLOWED}/32`] });
});
after(async () => {
  await api?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
});

async function settings(body: object): Promise<void> {
  assert.equal((await api.ask("PUT", "/config/dynamic-dns", body)).status, 200);
}

function wire(text: string): Uint8Array {
  const name = nameFromText(text, text.endsWith(".") ? undefined : wire(ZONE));
  assert.ok(name.kind === "name", text);
  return name.name;
}

function keyOf(name: string, byte: number): TsigKey {
  const result = nameFromText(name);
  assert.ok(result.kind === "name");
  return { name: result.name, algorithm: "hmac-sha256", secret: Buffer.alloc(32, byte) };
}

type Type = "A" | "TXT";

/** "add" has a TTL and rdata; "delete" without rdata is of the whole RRset, with it of that RR; "absent" is a prerequisite. */
type Line = readonly ["add" | "delete" | "absent", name: string, type: Type, rdata?: string];

function recordOf([kind, name, type, text]: Line): ResourceRecord {
  const number = RRTYPE[type];
  const rdata = text === undefined ? undefined : rdataFromText(number, text);
  if (rdata?.kind === "error") throw new Error(rdata.detail);
  const recordClass = kind === "add" ? CLASS.IN : kind === "delete" && rdata === undefined ? CLASS.ANY : CLASS.NONE;
  const bytes = rdata?.rdata ?? new Uint8Array(0);
  return { name: wire(name), type: number, class: recordClass, ttl: kind === "add" ? 60 : 0, rdata: bytes };
}

function messageOf(lines: readonly Line[]): Uint8Array {
  return encodeMessage({
    ...{ id: 0, flags: 0, opcode: OPCODE.UPDATE, rcode: RCODE.NOERROR, edns: undefined },
    questions: [{ name: wire(ZONE), type: RRTYPE.SOA, class: CLASS.IN }],
    answers: lines.filter(([kind]) => kind === "absent").map(recordOf),
    authorities: lines.filter(([kind]) => kind !== "absent").map(recordOf),
    additionals: [],
  }).bytes;
}

type Sender = { readonly key?: TsigKey; readonly from?: string; readonly tcp?: true };

/** The RCODE of the answer, which is signed where the request was. */
async function update(lines: readonly Line[], { key, from, tcp }: Sender): Promise<number> {
  const endpoint = node.dns[0];
  assert.ok(endpoint !== undefined);
  const client = tcp === true ? await openTcpClient(endpoint) : await openUdpClient(endpoint, from);
  try {
    const nowSeconds = Math.floor(Date.now() / 1_000);
    const signed = key === undefined ? undefined : signRequest(key, messageOf(lines), nowSeconds);
    const answer = await client.ask(signed?.bytes ?? messageOf(lines));
    assert.ok(answer !== undefined);
    if (key !== undefined && signed !== undefined) {
      assert.equal(verifyResponse(answer, key, signed.mac, nowSeconds).kind, "verified");
    }
    return (answer[3] ?? 0) & 0xf;
  } finally {
    client.close();
  }
}

async function values(name: string, type: string): Promise<readonly string[]> {
  const [endpoint] = node.dns;
  assert.ok(endpoint !== undefined);
  const text = await dig(endpoint, `${name}.${ZONE}`, type);
  return text === "" ? [] : text.split("\n").sort();
}

async function record(name: string): Promise<Record<string, unknown>> {
  const { body } = await api.ask("GET", `/zones/${zoneId}/records?name=${name}`);
  return body.items[0];
}

test("what an ACME client sends is answered and seen at once, and its key changes nothing else", async () => {
  const key = ACME;
  // lego and cert-manager over either transport; certbot, whose name is below another.
  assert.equal(await update([["add", "_acme-challenge", "TXT", '"one"']], { key }), RCODE.NOERROR);
  assert.deepEqual(await values("_acme-challenge", "TXT"), ['"one"']);
  assert.equal(await update([["add", "_acme-challenge", "TXT", '"two"']], { key, tcp: true }), RCODE.NOERROR);
  assert.deepEqual(await values("_acme-challenge", "TXT"), ['"one"', '"two"']);
  assert.equal(await update([["delete", "_acme-challenge", "TXT", '"one"']], { key }), RCODE.NOERROR);
  assert.deepEqual(await values("_acme-challenge", "TXT"), ['"two"']);
  assert.equal(await update([["delete", "_acme-challenge", "TXT"]], { key }), RCODE.NOERROR);
  assert.equal(await update([["add", "_acme-challenge.www", "TXT", '"x"']], { key }), RCODE.NOERROR);
  const { body } = await api.ask("GET", "/zones");
  for (const lines of [
    [["add", "_acme-challenge", "A", "10.0.0.1"]],
    [["add", "www", "TXT", '"x"']],
    [["delete", "_acme-challenge.www", "A"]],
    [
      ["add", "_acme-challenge.other", "TXT", '"x"'],
      ["add", "other", "A", "10.0.0.1"],
    ],
  ] as const satisfies readonly (readonly Line[])[]) {
    assert.equal(await update(lines, { key }), RCODE.REFUSED, JSON.stringify(lines));
  }
  assert.deepEqual((await api.ask("GET", "/zones")).body, body);
  assert.deepEqual(await values("_acme-challenge.other", "TXT"), []);
  assert.equal(await update([["add", "x", "TXT", '"x"']], { key: NONE }), RCODE.REFUSED);
});

test("what ExternalDNS sends: creations with their registry, a change as deletion and addition, prerequisites", async () => {
  const key = FULL;
  const owned = '"heritage=external-dns,external-dns/owner=default"';
  const created: readonly Line[] = [
    ["add", "app", "A", "10.1.0.1"],
    ["add", "app", "A", "10.1.0.2"],
    ["add", "a-app", "TXT", owned],
  ];
  assert.equal(await update(created, { key, tcp: true }), RCODE.NOERROR);
  assert.deepEqual(await values("app", "A"), ["10.1.0.1", "10.1.0.2"]);
  const changed: readonly Line[] = [
    ["delete", "app", "A", "10.1.0.1"],
    ["delete", "app", "A", "10.1.0.2"],
    ["add", "app", "A", "10.1.0.3"],
  ];
  assert.equal(await update(changed, { key, tcp: true }), RCODE.NOERROR);
  assert.deepEqual(await values("app", "A"), ["10.1.0.3"]);
  assert.equal(await update([["absent", "app", "A"], ...created], { key }), RCODE.YXRRSET);
  assert.deepEqual(await values("app", "A"), ["10.1.0.3"]);
});

test("values of a record change, and its policy stays; a protected one makes all of an update REFUSED", async () => {
  const path = `/zones/${zoneId}/records`;
  const lb_policy = { method: "weighted", value_weights: { "10.2.0.1": 90, "10.2.0.2": 10 } };
  const twoValues = [{ value: "10.2.0.1" }, { value: "10.2.0.2" }];
  await create(api, path, { name: "steered", type: "A", ttl: 300, values: twoValues, lb_policy, comment: "kept" });
  await create(api, path, { name: "fixed", type: "A", values: [{ value: "10.2.1.1" }], protected: true });
  const lines: readonly Line[] = [
    ["delete", "steered", "A", "10.2.0.2"],
    ["add", "steered", "A", "10.2.0.3"],
  ];
  assert.equal(await update(lines, { key: FULL }), RCODE.NOERROR);
  const steered = await record("steered");
  assert.deepEqual(steered.values, [{ value: "10.2.0.1" }, { value: "10.2.0.3" }]);
  assert.deepEqual(steered.lb_policy, { method: "weighted", value_weights: { "10.2.0.1": 90 } });
  assert.deepEqual([steered.comment, steered.ttl], ["kept", 60]);
  const touching: readonly Line[] = [
    ["add", "beside", "A", "10.2.2.1"],
    ["add", "fixed", "A", "10.2.1.2"],
  ];
  assert.equal(await update(touching, { key: FULL }), RCODE.REFUSED);
  assert.deepEqual([await values("beside", "A"), await values("fixed", "A")], [[], ["10.2.1.1"]]);
});

test("unsigned updates are for the networks that are listed, and none while updates are off", async () => {
  const lines: readonly Line[] = [["add", "open", "A", "10.3.0.1"]];
  assert.equal(await update(lines, {}), RCODE.REFUSED);
  assert.deepEqual(await values("open", "A"), []);
  assert.equal(await update(lines, { from: ALLOWED }), RCODE.NOERROR);
  assert.deepEqual(await values("open", "A"), ["10.3.0.1"]);
  await settings({ enabled: false });
  assert.equal(await update([["delete", "open", "A"]], { from: ALLOWED }), RCODE.REFUSED);
  assert.equal(await update([["delete", "open", "A"]], { key: FULL }), RCODE.REFUSED);
  await settings({ enabled: true });
  assert.equal(await update([["delete", "open", "A"]], { key: FULL }), RCODE.NOERROR);
});

test("the audit log says which key changed what, from where, and figures count the answers", async () => {
  const before = await figure(node, 'svc_updates_total{rcode="NOERROR"}');
  assert.equal(await update([["add", "audited", "A", "10.4.0.1"]], { key: FULL, from: "127.0.0.9" }), RCODE.NOERROR);
  assert.equal(await update([["add", "audited", "A", "10.4.0.2"]], { from: ALLOWED }), RCODE.NOERROR);
  const { body } = await api.ask("GET", "/audit?resource=record&limit=2");
  const [unsigned, signed] = body.items;
  const entry = ({ user_name, source_address, action, resource_name, detail, result }: Record<string, unknown>) => ({
    ...{ user_name, source_address, action, resource_name, detail, result },
  });
  const common = { detail: "dynamic update", result: "success", resource_name: signed.resource_name };
  assert.deepEqual(entry(signed), { user_name: "full.", source_address: "127.0.0.9", action: "create", ...common });
  assert.deepEqual(entry(unsigned), { user_name: "unsigned", source_address: ALLOWED, action: "update", ...common });
  assert.match(String(signed.resource_name), /^audited/);
  await untilFigure(node, 'svc_updates_total{rcode="NOERROR"}', before + 2);
  assert.ok((await figure(node, 'svc_updates_total{rcode="REFUSED"}')) > 0);
  assert.ok((await figure(node, 'svc_tsig_messages_total{outcome="ok"}')) > 0);
});

/** The query log of a running node: how much of it there is, where it goes, and that nobody waits for it. */
import assert from "node:assert/strict";
import { constants } from "node:fs";
import { mkdtemp, open, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { RRTYPE } from "../../src/dns/codes.ts";
import { exchangeTcp, openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { requireProgram } from "../support/peers.ts";
import { runToEnd, startChild } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { type ScenarioNode, startNode } from "./running-node.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-query-log-"));
after(() => rm(parent, { recursive: true, force: true }));

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was written.
type Line = any;

/** The last line may still be on its way. */
function linesOf(text: string): Line[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line.includes('"answered_by"'))
    .map((line) => JSON.parse(line));
}

async function readLines(path: string): Promise<Line[]> {
  return linesOf(await readFile(path, "utf8").catch(() => ""));
}

/** Sends so many questions for a name over UDP, each once the one before is answered. */
async function askMany(node: ScenarioNode, count: number, name = "www.example.test."): Promise<void> {
  const client = await openUdpClient(node.dns[0]!);
  for (let asked = 0; asked < count; asked++) assert.ok(await client.ask(encodeQuery({ name, type: RRTYPE.A })));
  client.close();
}

async function setLog(node: ScenarioNode, settings: object): Promise<void> {
  await using api = await signIn(node.api);
  const { status, body } = await api.ask("PUT", "/config/query-log", settings);
  assert.equal(status, 200, JSON.stringify(body));
}

async function metric(node: ScenarioNode, name: string): Promise<number> {
  const text = await (await node.get("/metrics")).text();
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.split(" ")
      .at(-1) ?? Number.NaN,
  );
}

test("one in ten of a thousand queries is a line on standard output, and none once it is switched off", async () => {
  await using node = await startNode();
  await askMany(node, 50);
  await setLog(node, { enabled: true, sample_rate: 10 });
  await askMany(node, 1_000);
  const lines = () => linesOf(node.child.output());
  await waitFor("a hundred lines", 20_000, () => lines().length >= 100);
  await setLog(node, { enabled: false });
  await askMany(node, 100);
  await setLog(node, { enabled: true, sample_rate: 1 });
  await askMany(node, 7, "a.example.test.");
  await waitFor("the last lines", 20_000, () => lines().some(({ name }) => name === "a.example.test."));
  await waitFor("all of them", 20_000, () => lines().length >= 107);
  assert.equal(lines().length, 107);
  assert.equal(lines().filter(({ name }) => name === "www.example.test.").length, 100);
  assert.equal(await metric(node, "svc_query_log_events_dropped_total"), 0);
  assert.equal(await metric(node, 'svc_query_log_written_total{sink="lines"}'), 107);
});

test("a line tells who asked for what and what the answer was, keys in one order, whatever the name holds", async () => {
  const path = join(parent, "lines.log");
  await using node = await startNode({ env: { SVC_QUERY_LOG_FILE: path, SVC_NODE_ID: "n-1" } });
  await setLog(node, { enabled: true });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const questions = [
    ["web.example.test", "A", "+dnssec", "+bufsize=1400", "+norec"],
    ["nothing.example.test", "AAAA", "+tcp", "+noedns"],
    ["elsewhere.example", "TXT", "+noedns"],
    ["version.bind", "TXT", "CH"],
    ['\\010\\"{\\000}\\255.example.test', "TYPE4711"],
  ] as const;
  // Each thread tells its own, and of what they tell at one time the order is open.
  for (const [index, question] of questions.entries()) {
    await dig(endpoint, ...question);
    await waitFor("its line", 20_000, async () => (await readLines(path)).length > index);
  }
  const lines = await readLines(path);
  const keys =
    "time node_id client port transport name type class rcode flags answers bytes answered_by extended_error";
  for (const line of lines) {
    assert.equal(Object.keys(line).join(" "), `${keys} edns_bytes duration_us`);
    assert.match(line.time, TIME);
    assert.deepEqual([line.node_id, line.client], ["n-1", "127.0.0.1"]);
    assert.ok(line.port > 1_023 && line.duration_us >= 0 && line.duration_us < 1e6 && line.bytes > 12);
  }
  const told = lines.map(({ transport, name, type, class: asked, rcode, flags, answers, answered_by, edns_bytes }) =>
    [transport, name, type, asked, rcode, flags.join(), answers, answered_by.join(), edns_bytes].join(" "),
  );
  assert.deepEqual(told, [
    "udp web.example.test. A IN NOERROR aa,do 3 zone 1400",
    "tcp nothing.example.test. AAAA IN NXDOMAIN aa,rd 0 zone ",
    "udp elsewhere.example. TXT IN REFUSED rd 0 refused ",
    told[3]!.startsWith("udp version.bind. TXT CH ") ? told[3]! : "",
    'udp \\010\\"{\\000}\\255.example.test. TYPE4711 IN NXDOMAIN aa,rd 0 zone 1232',
  ]);
});

test("the file is opened anew on SIGHUP", async () => {
  const path = join(parent, "moved.log");
  await using node = await startNode({ env: { SVC_QUERY_LOG_FILE: path } });
  await setLog(node, { enabled: true });
  await askMany(node, 3);
  await waitFor("three lines", 20_000, async () => (await readLines(path)).length === 3);
  await rename(path, `${path}.1`);
  await askMany(node, 2);
  await waitFor("five lines", 20_000, async () => (await readLines(`${path}.1`)).length === 5);
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("a new file", 20_000, async () => {
    await askMany(node, 1);
    return (await readLines(path)).length > 0;
  });
});

test("a pipe that nobody reads loses lines and counts them; once it is read whole lines come", async () => {
  const path = join(parent, "pipe");
  await runToEnd("mkfifo", [path], 10_000);
  await using node = await startNode({ env: { SVC_QUERY_LOG_FILE: path } });
  await setLog(node, { enabled: true });
  await askMany(node, 20);
  const lost = 'svc_query_log_lost_total{sink="lines"}';
  await waitFor("twenty lost lines", 20_000, async () => (await metric(node, lost)) >= 20);
  // A reader that does not read: a pipe holds 64 KiB.
  await using reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  await waitFor("a full pipe", 60_000, async () => {
    await askMany(node, 300);
    return (await metric(node, lost)) > 100;
  });
  let text = "";
  const bytes = Buffer.alloc(65_536);
  await waitFor("lines behind the gap", 60_000, async () => {
    await askMany(node, 20, "ns1.example.test.");
    const { bytesRead } = await reader.read(bytes).catch(() => ({ bytesRead: 0 }));
    text += bytes.toString("latin1", 0, bytesRead);
    return text.includes("ns1.example.test.") && text.endsWith("\n");
  });
  for (const line of text.trimEnd().split("\n")) assert.match(JSON.parse(line).time, TIME);
  assert.equal(await dig(node.dns[0]!, "ns1.example.test", "A"), "192.0.2.1");
});

test("a full disk loses lines and counts them, and the answers do not mind", async () => {
  await using node = await startNode({ env: { SVC_QUERY_LOG_FILE: "/dev/full" } });
  await setLog(node, { enabled: true });
  await askMany(node, 100);
  await waitFor("a hundred lost lines", 20_000, async () => {
    return (await metric(node, 'svc_query_log_lost_total{sink="lines"}')) === 100;
  });
  assert.equal(await metric(node, 'svc_query_log_written_total{sink="lines"}'), 0);
  await waitFor("a warning", 20_000, () => node.messages().some((text) => text.includes("query log loses lines")));
});

test("dnstap: a receiver gets each answer whole, and once it is back those that come then", async (t) => {
  if (requireProgram(t, "fstrm_capture") === undefined || requireProgram(t, "dnstap-read") === undefined) return;
  const socket = join(parent, "dnstap.sock");
  await using node = await startNode({ env: { SVC_QUERY_LOG_DNSTAP_SOCKET: socket, SVC_NODE_ID: "n-tap" } });
  await setLog(node, { enabled: true });
  await askMany(node, 5);
  await waitFor("five lost", 20_000, async () => (await metric(node, 'svc_query_log_lost_total{sink="dnstap"}')) >= 5);
  for (const name of ["first", "second"]) {
    const file = join(parent, `${name}.fstrm`);
    const args = ["-dddd", "-t", "protobuf:dnstap.Dnstap", "-u", socket, "-w", file];
    const receiver = await startChild("fstrm_capture", "fstrm_capture", args);
    const written = 'svc_query_log_written_total{sink="dnstap"}';
    const before = await metric(node, written);
    await waitFor("a message", 30_000, async () => {
      await askMany(node, 1, "mail.example.test.");
      return (await metric(node, written)) > before;
    });
    await exchangeTcp(node.dns[0]!, encodeQuery({ name: `${name}.example.test.`, type: RRTYPE.MX }));
    // The node takes its leave, and what was on its way has arrived.
    if (name === "second") {
      await setLog(node, { enabled: false });
      await waitFor("good-bye", 20_000, () => receiver.output().includes("FSTRM_CONTROL_STOP"));
    }
    process.kill(receiver.pid, "SIGTERM");
    await receiver.exited;
    // One that is ended like this may have left what was on its way.
    if (name === "first") continue;
    const text = await runToEnd("dnstap-read", ["-p", file], 20_000);
    assert.match(text, /CR 127\.0\.0\.1:\d+ .* UDP .* mail\.example\.test\/IN\/A/);
    assert.match(text, new RegExp(`CR 127\\.0\\.0\\.1:\\d+ .* TCP .* ${name}\\.example\\.test/IN/MX`));
    assert.match(text, /192\.0\.2\.25/);
    assert.match(text, /status: NXDOMAIN/);
  }
  assert.equal(linesOf(node.child.output()).length, 0);
});

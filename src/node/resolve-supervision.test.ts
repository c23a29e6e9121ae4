/** The whole way of a query that has to be resolved, over each kind of listener, and what becomes of it when threads die. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openTcpClient, openUdpClient } from "../../tests/support/dns-client.ts";
import { openResolveLab, type ResolveLab, stopResolve } from "../../tests/support/resolve-lab.ts";
import { waitFor } from "../../tests/support/wait.ts";
import { decode, queryBytes } from "../../tests/support/zone-lab.ts";
import { FLAG, RCODE } from "../dns/codes.ts";
import { extendedErrorsOf } from "../dns/edns.ts";
import { COUNTER, sumCounter } from "../image/counters.ts";
import { type Address, hostText, isWildcard } from "../listen/address.ts";
import { isRunning, restartsOf } from "./status.ts";

const query = (name: string, type = "A") => queryBytes(`${name} ${type}`, { flags: FLAG.RD });

function endpoint(address: Address) {
  const host = isWildcard(address.bytes) ? (address.bytes.length === 4 ? "127.0.0.2" : "::1") : hostText(address);
  return { port: address.port, address: host };
}

type Client = Pick<Awaited<ReturnType<typeof openUdpClient>>, "ask">;

async function openClients({ addresses }: ResolveLab) {
  const address = addresses[0];
  assert.ok(address !== undefined);
  const [udp, tcp] = [await openUdpClient(endpoint(address)), await openTcpClient(endpoint(address))];
  return { udp, tcp, [Symbol.dispose]: () => [udp.close(), tcp.close()] };
}

/** The answer's response code, addresses and extended errors. */
function told(answer: Buffer | undefined): string {
  if (answer === undefined) return "silence";
  const { rcode, answers, edns } = decode(answer);
  const addresses = answers.map(({ rdata }) => rdata.join("."));
  return [rcode, ...addresses, ...extendedErrorsOf(edns).map(({ code }) => `ede=${code}`)].join(" ");
}

const FOUND = `${RCODE.NOERROR} 192.0.2.1`;
const ANY4 = { bytes: new Uint8Array(4), port: 0 };
const ANY6 = { bytes: new Uint8Array(16), port: 0 };
const LOOP6 = { bytes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), port: 0 };

for (const [title, options] of [
  ["batch", { udp: "batch" }],
  ["batch, IPv6", { udp: "batch", addresses: [LOOP6] }],
  ["batch, wildcards", { udp: "batch", addresses: [ANY4, ANY6] }],
  ["dgram", { udp: "dgram" }],
  ["dgram without descriptors", { udp: "dgram", hasDescriptors: false }],
] as const) {
  describe(title, () => {
    test("a name that nobody holds is resolved, over UDP and TCP, and from the cache the second time", async () => {
      await using lab = await openResolveLab(options);
      for (const address of lab.addresses) {
        const [udp, tcp] = [await openUdpClient(endpoint(address)), await openTcpClient(endpoint(address))];
        const name = `n${address.bytes.length}`;
        assert.equal(told(await udp.ask(query(`${name}.example.`))), FOUND);
        assert.equal(told(await tcp.ask(query(`${name}.example.`))), FOUND);
        assert.equal(told(await tcp.ask(query(`${name}.other.example.`))), FOUND);
        assert.equal(told(await udp.ask(query("silent.example."))).split(" ")[0], String(RCODE.SERVFAIL));
        udp.close();
        tcp.close();
      }
      assert.equal(sumCounter(lab.shared, COUNTER.CACHE_HITS) > 0, true);
      assert.deepEqual(lab.lines, []);
    });
  });
}

test("many at once over both transports each get their own answer, whatever the others wait for", async () => {
  await using lab = await openResolveLab({ udp: "batch", answerThreads: 2 });
  using clients = await openClients(lab);
  const { udp, tcp } = clients;
  const names = Array.from({ length: 150 }, (_, index) => `${index % 3 === 0 ? "late" : "soon"}-${index}.example.`);
  const slow = udp.ask(query("silent.example."));
  const answers = await Promise.all(names.flatMap((name) => [udp.ask(query(name)), tcp.ask(query(name))]));
  for (const [index, answer] of answers.entries()) {
    assert.ok(answer !== undefined);
    assert.equal(told(answer), FOUND);
    assert.deepEqual(decode(answer).questions[0], decode(query(names[index >> 1]!)).questions[0]);
  }
  assert.match(told(await slow), /^2 ede=2[23]$/);
  const figures = await lab.link.figures();
  assert.ok(figures !== undefined && figures.waiting === 0 && figures.cache.entries >= 150, JSON.stringify(figures));
});

test("a query that came from ourselves fails at once, and is counted", async () => {
  await using lab = await openResolveLab({ udp: "batch" });
  using clients = await openClients(lab);
  assert.equal(told(await clients.udp.ask(query("ours.example."))), "2 ede=0");
  assert.equal(told(await clients.tcp.ask(query("ours.example."))), "2 ede=0");
  assert.equal((await lab.link.figures())?.loops, 2);
});

test("settings that are still on their way are waited for; a route that nobody knows fails", async () => {
  await using lab = await openResolveLab({ udp: "batch", route: { number: 99 } });
  using clients = await openClients(lab);
  assert.equal(told(await clients.udp.ask(query("a.example."))), "2 ede=0");
  lab.link.sendSettings({ ...lab.settings, routes: lab.settings.routes.map((route) => ({ ...route, number: 77 })) });
  assert.equal(told(await clients.udp.ask(query("b.example."))), FOUND);
});

test("flushing is told with a count, and what nobody answers is undefined", async () => {
  await using lab = await openResolveLab({ udp: "batch" });
  using clients = await openClients(lab);
  for (const name of ["a.one.example.", "b.one.example.", "two.example."]) await clients.udp.ask(query(name));
  const one = Buffer.from("\x03one\x07example\x00", "latin1");
  assert.equal(await lab.link.flush(one, true), 2);
  assert.equal(await lab.link.flush(undefined, false), 1);
  await stopResolve(lab);
  const asked = lab.link.figures();
  lab.link[Symbol.dispose]();
  assert.equal(await asked, undefined);
});

for (const [fault, limits] of [
  ["kill", {}],
  ["hang", { lifelessMs: 3_000 }],
] as const) {
  test(`a thread with a fault (${fault}) is replaced, is told the settings, and resolves with an empty cache`, async () => {
    await using lab = await openResolveLab({ udp: "dgram", ...limits });
    using clients = await openClients(lab);
    const { udp, tcp } = clients;
    // A machine with much other work makes a thread lifeless that has only just begun.
    const found = (client: Client, name: string) => async () => told(await client.ask(query(name))) === FOUND;
    await waitFor("an answer of the first thread", 15_000, found(udp, "a.example."));
    const restarts = restartsOf(lab.status, "resolve");
    const lost = tcp.ask(query(`${fault}.example.`), 500);
    const isReplaced = () => restartsOf(lab.status, "resolve") > restarts && isRunning(lab.status, "resolve");
    await waitFor("a replacement", 15_000, isReplaced);
    assert.equal(await lost, undefined);
    const misses = sumCounter(lab.shared, COUNTER.CACHE_MISSES);
    await udp.ask(query("a.example."));
    assert.equal(sumCounter(lab.shared, COUNTER.CACHE_MISSES), misses + 1);
    // Both transports find the new thread, the connection that was open before as well.
    await waitFor("an answer over UDP", 15_000, found(udp, "a.example."));
    await waitFor("an answer over TCP", 15_000, found(tcp, "b.example."));
  });
}

test("a control thread that is replaced finds the routes as they were", async () => {
  await using lab = await openResolveLab({ udp: "batch" });
  using clients = await openClients(lab);
  assert.equal(told(await clients.udp.ask(query("a.example."))), FOUND);
  const port = lab.resolve.connect();
  assert.equal(told(await clients.udp.ask(query("b.example."))), FOUND);
  port.close();
});

test("a stop tells those that wait that there is no answer", async () => {
  await using lab = await openResolveLab({ udp: "batch" });
  using clients = await openClients(lab);
  const { udp, tcp } = clients;
  const waiting = [udp.ask(query("silent.example.")), tcp.ask(query("silent.other.example."))];
  await waitFor("both wait", 5_000, async () => (await lab.link.figures())?.waiting === 2);
  await stopResolve(lab);
  for (const answer of await Promise.all(waiting)) assert.equal(told(answer).split(" ")[0], String(RCODE.SERVFAIL));
});

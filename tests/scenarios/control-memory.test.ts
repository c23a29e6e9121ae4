import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import { dig } from "./dig.ts";
import { FAULTY_MAIN, startNode } from "./running-node.ts";

const directory = await mkdtemp(join(tmpdir(), "signpost-memory-"));
after(() => rm(directory, { recursive: true }));

test("DNS answers on while the control thread runs out of memory; its replacement has all that was acknowledged", async () => {
  const fault = join(directory, "fault");
  await using node = await startNode({ main: FAULTY_MAIN, env: { FAULT_FILE: fault } });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  await using client = await signIn(node.api);
  const [zone] = (await client.ask("GET", "/zones")).body.items;
  const create = (name: string) =>
    client.ask("POST", `/zones/${zone.id}/records`, { name, type: "A", values: [{ value: "192.0.2.9" }] });

  const udp = await openUdpClient(endpoint);
  const query = encodeQuery({ name: "www.example.test", type: 1 });
  const asked = { all: 0, unanswered: 0 };
  let isLoading = true;
  const load = (async () => {
    for (; isLoading; asked.all++) if ((await udp.ask(query)) === undefined) asked.unanswered += 1;
  })();
  const acknowledged: string[] = [];
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let index = 0; isLoading; index++) {
      const name = `w${writer}-${index}`;
      // The API goes with the thread; what it did not acknowledge may be there or not.
      const answer = await create(name).catch(() => undefined);
      if (answer?.status === 200) acknowledged.push(name);
      else await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  await waitFor("some writes", 10_000, () => acknowledged.length > 50);
  await writeFile(fault, "");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, () =>
    node.messages().some((message) => message === "thread control ended and is replaced"),
  );
  await waitFor("the replacement serves", 20_000, async () => {
    const response = await node.get("/readyz").catch(() => undefined);
    return response?.status === 200;
  });
  const before = acknowledged.length;
  await waitFor("writes go on", 10_000, () => acknowledged.length > before + 20);
  isLoading = false;
  await Promise.all([load, ...writers]);
  udp.close();
  assert.equal(asked.unanswered, 0);
  assert.ok(asked.all > 0);
  for (const name of acknowledged) assert.equal(await dig(endpoint, `${name}.example.test`, "A"), "192.0.2.9", name);
  const stored = (await client.ask("GET", `/zones/${zone.id}/records?type=A`)).body.items;
  const names = new Set(stored.map(({ name }: { name: string }) => name));
  assert.deepEqual(
    acknowledged.filter((name) => !names.has(name)),
    [],
  );
  assert.match(await (await node.get("/metrics")).text(), /^svc_thread_restarts_total\{thread="control"\} 1$/m);
});

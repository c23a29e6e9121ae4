import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { dig } from "./dig.ts";
import { FAULTY_MAIN, startNode } from "./running-node.ts";

function zoneText(serial: number): string {
  return `$ORIGIN memory.test.\n$TTL 60\n@ SOA ns1 host ${serial} 1 2 3 4\n@ NS ns1\nns1 A 192.0.2.1\n`;
}

test("DNS answers on while the control thread runs out of memory, and its replacement publishes again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-memory-"));
  const [zone, fault] = [join(directory, "memory.zone"), join(directory, "fault")];
  await writeFile(zone, zoneText(1));
  await using node = await startNode({ main: FAULTY_MAIN, zones: [zone], env: { FAULT_FILE: fault } });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const client = await openUdpClient(endpoint);
  const query = encodeQuery({ name: "ns1.memory.test", type: 1 });

  let unanswered = 0;
  let asked = 0;
  let isLoading = true;
  const load = (async () => {
    for (; isLoading; asked++) if ((await client.ask(query)) === undefined) unanswered += 1;
  })();
  await writeFile(zone, zoneText(2));
  await writeFile(fault, "");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, () =>
    node.messages().some((message) => message === "thread control ended and is replaced"),
  );
  await waitFor("the replacement serves", 20_000, async () => {
    const response = await node.get("/readyz").catch(() => undefined);
    return response?.status === 200;
  });
  await waitFor("the new serial", 5_000, async () =>
    (await dig(endpoint, "memory.test", "SOA")).includes(" 2 1 2 3 4"),
  );
  isLoading = false;
  await load;
  client.close();
  assert.equal(unanswered, 0);
  assert.ok(asked > 0);
  assert.match(await (await node.get("/metrics")).text(), /^svc_thread_restarts_total\{thread="control"\} 1$/m);
  await rm(directory, { recursive: true });
});

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { dig } from "./dig.ts";
import { startNode } from "./running-node.ts";

function zoneText(serial: number, address: string): string {
  return `$ORIGIN reload.test.\n$TTL 60\n@ SOA ns1 host ${serial} 1 2 3 4\n@ NS ns1\nns1 A 192.0.2.1\nwww A ${address}\n`;
}

test("SIGHUP reads the zone files again; a file with errors leaves the zone as it was", async () => {
  const directory = await mkdtemp(join(tmpdir(), "signpost-reload-"));
  const file = join(directory, "reload.zone");
  await writeFile(file, zoneText(1, "192.0.2.10"));
  await using node = await startNode({ zones: [file] });
  const [endpoint] = node.dns;
  assert.ok(endpoint);
  const ask = () => dig(endpoint, "www.reload.test", "A");
  const isReady = async () => (await node.get("/readyz")).status === 200;
  assert.equal(await ask(), "192.0.2.10");

  await writeFile(file, zoneText(2, "192.0.2.20"));
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the new address is answered", 5_000, async () => (await ask()) === "192.0.2.20");
  assert.ok(await isReady());

  await writeFile(file, `${zoneText(3, "192.0.2.30")}bad A 192.0.2.400\n`);
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the fault is reported at its place", 5_000, () =>
    node.messages().some((message) => message.startsWith(`${file}:7:`)),
  );
  assert.equal(await ask(), "192.0.2.20");
  assert.ok(await isReady(), "what was served is served");

  await rm(file);
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the missing file is reported", 5_000, () =>
    node.messages().some((message) => message.includes("there is no such file")),
  );
  assert.equal(await ask(), "192.0.2.20");

  await writeFile(file, zoneText(4, "192.0.2.40"));
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the mended file is served", 5_000, async () => (await ask()) === "192.0.2.40");
  await rm(directory, { recursive: true });
});

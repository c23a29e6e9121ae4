/** What the query log says of names that the node does not hold: by what each was answered, and who asked. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { startForwarding, ZONE } from "./forward-world.ts";
import { create } from "./notify-world.ts";

const parent = await mkdtemp(join(tmpdir(), "signpost-logged-"));
after(() => rm(parent, { recursive: true, force: true }));

const PUBLIC = `
public.example. 3600 SOA ns.public.example. host.public.example. 1 7200 900 1209600 60
www.public.example. 300 A 192.0.2.80
ads.public.example. 300 A 192.0.2.81
`;

for (const mode of ["batch", "dgram"]) {
  test(`${mode}: forwarded, from the cache, behind a name of ours, overridden, blocked`, async () => {
    const path = join(parent, `${mode}.log`);
    await using world = await startForwarding({ table: PUBLIC, env: { SVC_QUERY_LOG_FILE: path, SVC_DNS_UDP: mode } });
    await world.record({ name: "web", type: "CNAME", values: [{ value: "www.public.example." }] });
    await create(world.api, "/overrides", { name: "over.example.", type: "A", values: [{ value: "10.0.0.9" }] });
    await world.put("/blocklist", { domains: ["ads.public.example"] });
    await world.put("/config/query-log", { enabled: true });
    const questions = [
      ["www.public.example", {}],
      ["www.public.example", {}],
      [`web.${ZONE}`, {}],
      [`no.${ZONE}`, {}],
      ["over.example", {}],
      ["ads.public.example", {}],
      ["other.public.example", { tcp: true }],
      ["other.public.example", { tcp: true }],
      ["unknown.example", { rd: false }],
    ] as const;
    for (const [name, how] of questions) await world.ask(`${name} A`, how);
    const lines = await waitFor("a line for each", 20_000, async () => {
      const text = await readFile(path, "utf8").catch(() => "");
      const all = text.split("\n").slice(0, -1);
      return all.length === questions.length && all.map((line) => JSON.parse(line));
    });
    const told = lines.map(({ transport, name, rcode, answered_by, answers }) =>
      [transport, name, rcode, answers, answered_by.join("+")].join(" "),
    );
    assert.deepEqual(told.sort(), [
      "tcp other.public.example. NXDOMAIN 0 cache",
      "tcp other.public.example. NXDOMAIN 0 forwarded",
      "udp ads.public.example. NXDOMAIN 0 blocked",
      `udp no.${ZONE} NXDOMAIN 0 zone`,
      "udp over.example. NOERROR 1 override",
      "udp unknown.example. REFUSED 0 refused",
      `udp web.${ZONE} NOERROR 2 zone+cache`,
      "udp www.public.example. NOERROR 1 cache",
      "udp www.public.example. NOERROR 1 forwarded",
    ]);
    for (const { client, port } of lines) assert.deepEqual([client, port > 1_023], ["127.0.0.1", true]);
  });
}

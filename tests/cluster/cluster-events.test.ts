/** What a webhook hears of nodes that come, leave and die, and what the API and the figures show of them meanwhile. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { signIn } from "../scenarios/api-client.ts";
import { figure } from "../scenarios/notify-world.ts";
import { startCollector } from "../support/event-collector.ts";
import { waitFor } from "../support/wait.ts";
import { kill, startAgain, startCluster, threeOf, untilReady } from "./cluster-world.ts";

const SECRET = "the secret of the webhook";

test("a webhook hears who joined and who left, and /nodes, the comparison and the figures agree with it", async () => {
  await using collector = await startCollector();
  await using cluster = await startCluster(3, {
    SVC_NOTIFICATIONS_ENABLED: "true",
    SVC_NOTIFICATIONS_WEBHOOK_URL: `http://127.0.0.1:${collector.port}/`,
    SVC_NOTIFICATIONS_WEBHOOK_SECRET: SECRET,
    SVC_NOTIFICATIONS_MIN_INTERVAL_SECONDS: "0",
  });
  const [a, b, c] = threeOf(cluster);
  await using api = await signIn(a.api);
  /** "TYPE NODE STATUS" as node a tells them. */
  const heard = () =>
    collector.posted.flatMap(({ body, headers }) => {
      const signature = createHmac("sha256", SECRET).update(body, "utf8").digest("hex");
      assert.equal(headers["x-svc-signature"], `sha256=${signature}`);
      const { type, node, data } = JSON.parse(body);
      assert.equal(data.subject, data.node_id);
      return node === "a" ? [`${type} ${data.node_id} ${data.status}`] : [];
    });
  const untilHeard = (event: string) => waitFor(event, 30_000, () => heard().includes(event));
  const rowOf = async (id: string) => {
    const { body } = await api.ask("GET", "/nodes");
    return body.items.find((item: { id: string }) => item.id === id);
  };
  const members = (state: string) => figure(a, `svc_cluster_members{state="${state}"}`);

  const row = await waitFor("it has agreed with c", 30_000, async () => {
    const found = await rowOf("c");
    return found.last_agreement !== null && found.queued_changes === 0 && found;
  });
  assert.equal(row.status, "alive");
  assert.ok(row.lag_ms >= 0 && Math.abs(row.skew_ms) < 10_000, JSON.stringify(row));
  assert.equal((await rowOf("a")).self, true);
  assert.equal(await members("alive"), 3);
  assert.equal(await figure(a, 'svc_replication_connected{peer="b"}'), 1);

  await b.child.stop();
  await untilHeard("cluster.node_left b left");
  assert.equal((await rowOf("b")).status, "left");
  assert.equal((await rowOf("b")).queued_changes, null);
  assert.equal(await members("left"), 1);

  await kill(c);
  await untilHeard("cluster.node_left c dead");
  assert.equal((await rowOf("c")).status, "dead");
  const { body } = await api.ask("GET", "/cluster/consistency");
  assert.equal(body.agrees, true, "nobody else is there");
  assert.deepEqual(
    body.nodes.map(({ id, answered }: { id: string; answered: boolean }) => [id, answered]),
    [
      ["a", true],
      ["b", false],
      ["c", false],
    ],
  );

  await using again = await startAgain(b, { join: [a.peers] });
  await untilReady(again);
  await untilHeard("cluster.node_joined b alive");
  assert.equal((await rowOf("b")).status, "alive");
  assert.equal(await members("alive"), 2);
});

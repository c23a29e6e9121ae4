/** Steering of every type that can be probed, of overrides, and by the default policy of a zone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { create } from "./notify-world.ts";
import {
  httpTemplate,
  type Steering,
  sharedSteering,
  startBackends,
  tally,
  untilAnswered,
  valuesOf,
  WAIT_MS,
} from "./steer-world.ts";

const [A, B] = ["127.0.3.1", "127.0.3.2"] as const;

const steering = sharedSteering();

async function untilDig(world: Steering, wanted: readonly string[], ...words: string[]): Promise<void> {
  const text = wanted.toSorted().join("\n");
  let last = "";
  await waitFor(`dig ${words.join(" ")}: ${text}`, WAIT_MS, async () => {
    last = (await world.dig(...words)).toSorted().join("\n");
    return last === text;
  }).catch((error) => assert.fail(`${String(error)}: ${last}`));
}

/** Hosts a and b of the zone, which the names below lead to. */
async function hosts(world: Steering): Promise<void> {
  await world.record({ name: "a", type: "A", values: valuesOf(A) });
  await world.record({ name: "b", type: "A", values: valuesOf(B) });
}

test("a CNAME and an ALIAS lead to the first host that is healthy, by its name in the node's own zone", async () => {
  await using backends = await startBackends(A, B);
  await using world = await steering();
  await hosts(world);
  const rest = {
    values: valuesOf("a.steer.test.", "b.steer.test."),
    lb_policy: { method: "failover" },
    health_check_template: httpTemplate(backends.port),
  };
  await world.record({ name: "alias", type: "ALIAS", ...rest });
  await world.record({ name: "cname", type: "CNAME", ...rest });
  assert.deepEqual(await world.dig("cname.steer.test.", "A"), ["a.steer.test.", A]);
  assert.deepEqual(await world.dig("alias.steer.test.", "A"), [A]);
  await backends.at(A).kill();
  await untilDig(world, ["b.steer.test.", B], "cname.steer.test.", "A");
  await untilDig(world, [B], "alias.steer.test.", "A");
  await backends.at(A).revive();
  await untilDig(world, ["a.steer.test.", A], "cname.steer.test.", "A");
  await untilDig(world, [A], "alias.steer.test.", "A");
});

test("SRV values are probed at their own ports, and the address that goes with a dead one goes with it", async () => {
  await using first = await startBackends(A);
  await using second = await startBackends(B);
  await using world = await steering();
  await hosts(world);
  await world.record({
    name: "_api._tcp",
    type: "SRV",
    priority: 1,
    weight: 5,
    values: [
      { value: "a.steer.test.", port: first.port },
      { value: "b.steer.test.", port: second.port },
    ],
    health_check_template: { protocol: "tcp", interval_seconds: 1, timeout_seconds: 1 },
  });
  const [toA, toB] = [`1 5 ${first.port} a.steer.test.`, `1 5 ${second.port} b.steer.test.`];
  await untilDig(world, [toA, toB], "_api._tcp.steer.test.", "SRV");
  await first.at(A).kill();
  await untilDig(world, [toB], "_api._tcp.steer.test.", "SRV");
  const whole = (await world.dig("+noshort", "+additional", "_api._tcp.steer.test.", "SRV")).join("\n");
  assert.match(whole, new RegExp(`\\sA\\s+${B.replaceAll(".", "\\.")}`));
  assert.ok(!whole.includes(A), whole);
  await first.at(A).revive();
  await untilDig(world, [toA, toB], "_api._tcp.steer.test.", "SRV");
});

test("AAAA values are probed over IPv6", async () => {
  await using backends = await startBackends("::1");
  await using world = await steering();
  const health_check_template = httpTemplate(backends.port);
  // Nobody has the second: it is for documentation (RFC 3849).
  await world.record({ name: "six", type: "AAAA", values: valuesOf("::1", "2001:db8::1"), health_check_template });
  await untilDig(world, ["::1"], "six.steer.test.", "AAAA");
});

test("an override with a template withholds the dead, fails open, and is steered without a zone", async () => {
  await using backends = await startBackends(A, B);
  await using world = await steering();
  const name = "db.partner.example.";
  await create(world.api, "/overrides", {
    name,
    type: "A",
    values: valuesOf(A, B),
    lb_policy: { method: "failover", failover_order: [B] },
    health_check_template: httpTemplate(backends.port),
  });
  assert.deepEqual(await world.ask(name), [B]);
  await backends.at(B).kill();
  await untilAnswered(world, name, [A]);
  await backends.at(A).kill();
  await untilAnswered(world, name, [B]);
  await backends.at(A).revive();
  await untilAnswered(world, name, [A]);
});

test("a zone's default policy steers records without their own from the next answer on, until it is cleared", async () => {
  await using world = await steering();
  const put = async (json: object) => {
    const { status, body } = await world.api.ask("PUT", `/zones/${world.zoneId}`, json);
    assert.equal(status, 200, JSON.stringify(body));
  };
  await world.record({ name: "plain", type: "A", values: valuesOf(A, B) });
  await world.record({ name: "own", type: "A", values: valuesOf(A, B), lb_policy: { method: "round-robin" } });
  await world.record({ name: "text", type: "TXT", values: valuesOf('"one"', '"two"') });
  const answers = async () => {
    const seen = await tally(world, "plain", 40);
    return [
      [...seen.keys()].toSorted(),
      (await world.ask("own")).length,
      (await world.dig("text.steer.test.", "TXT")).length,
    ];
  };
  assert.deepEqual(await answers(), [[`${A} ${B}`], 2, 2]);
  await put({ lb_policy: { method: "failover" } });
  assert.deepEqual(await answers(), [[A], 2, 2]);
  await put({ lb_policy: { method: "weighted" } });
  assert.deepEqual(await answers(), [[A, B], 2, 2]);
  await put({ clear_lb_policy: true });
  assert.deepEqual(await answers(), [[`${A} ${B}`], 2, 2]);
});

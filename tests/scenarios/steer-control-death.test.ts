/** Answers follow health while the control thread is gone, and it tells of what happened meanwhile when it is back. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "../support/wait.ts";
import { FAULTY_MAIN } from "./running-node.ts";
import { httpTemplate, startBackends, startSteering, untilAnswered, untilJudged, valuesOf } from "./steer-world.ts";

const [A, B, C] = ["127.0.6.1", "127.0.6.2", "127.0.6.3"] as const;

const directory = await mkdtemp(join(tmpdir(), "signpost-control-death-"));
after(() => rm(directory, { recursive: true }));

test("a control thread that dies takes no verdict with it, and none of its successor's is missed", async () => {
  const fault = join(directory, "fault");
  await using backends = await startBackends(A, B, C);
  await using world = await startSteering({ main: FAULTY_MAIN, env: { FAULT_FILE: fault } });
  const { node } = world;
  const id = await world.record({
    name: "app",
    type: "A",
    values: valuesOf(A, B, C),
    health_check_template: httpTemplate(backends.port),
  });
  await untilJudged(world, id, { [A]: "healthy", [B]: "healthy", [C]: "healthy" });
  await backends.at(C).kill();
  await untilAnswered(world, "app", [A, B]);
  const before = await untilJudged(world, id, { [C]: "unhealthy" });
  await writeFile(fault, "at once");
  process.kill(node.child.pid, "SIGHUP");
  await waitFor("the death is reported", 20_000, async () => {
    assert.ok(!(await world.ask("app")).includes(C));
    return node.messages().some((message) => message.startsWith("thread control failed: Worker terminated"));
  });
  await backends.at(B).kill();
  await waitFor("the replacement serves", 20_000, async () => {
    assert.ok(!(await world.ask("app")).includes(C));
    return (await node.get("/readyz").catch(() => undefined))?.status === 200;
  });
  await untilAnswered(world, "app", [A]);
  const items = await untilJudged(world, id, { [A]: "healthy", [B]: "unhealthy", [C]: "unhealthy" });
  const sinceOf = (list: typeof items) => list.find(({ value }: { value: string }) => value === C).since;
  assert.equal(sinceOf(items), sinceOf(before), "what was known keeps its age");
  await backends.at(C).revive();
  await untilAnswered(world, "app", [A, C]);
});

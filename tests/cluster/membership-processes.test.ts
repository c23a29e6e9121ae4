import assert from "node:assert/strict";
import { test } from "node:test";
import { type MemberProcess, startMemberProcesses } from "../support/member-processes.ts";
import { waitFor } from "../support/wait.ts";

const WAIT_MS = 30_000;
const STALL_MS = 1_200;
const STALLS_MAX = 20;

async function allHear(members: readonly MemberProcess[], event: string): Promise<void> {
  for (const { name, events } of members) {
    await waitFor(`${name} hears "${event}"`, WAIT_MS, () => events().includes(event));
  }
}

async function stall({ child }: MemberProcess): Promise<void> {
  const startMs = performance.now();
  process.kill(child.pid, "SIGSTOP");
  await waitFor("the stall is over", STALL_MS, () => performance.now() - startMs >= STALL_MS, 2);
  process.kill(child.pid, "SIGCONT");
}

test("processes that stand still, are killed, and leave", async (t) => {
  const members = await startMemberProcesses(4);
  t.after(async () => {
    await Promise.all(members.filter(({ child }) => child.status() === undefined).map(({ child }) => child.stop()));
  });
  const [first, second, third, fourth] = members;
  assert.ok(first !== undefined && second !== undefined && third !== undefined && fourth !== undefined);

  await t.test("1.2 seconds are no event", async () => {
    const told = () => members.flatMap(({ events }) => events());
    for (let stalls = 1; ; stalls++) {
      const before = told().length;
      await stall(second);
      // What it would have brought about is heard by now.
      const endMs = performance.now() + 500;
      await waitFor("what follows", 500, () => performance.now() >= endMs);
      const after = told();
      assert.ok(!after.some((event) => event.startsWith("leave")), after.join(", "));
      // A machine with other work makes it a longer one now and then.
      if (after.length === before) break;
      assert.ok(stalls < STALLS_MAX, after.join(", "));
    }
  });

  await t.test("a stop for good is a death, and its end a return", async () => {
    const others = [first, third, fourth];
    process.kill(second.child.pid, "SIGSTOP");
    await allHear(others, "leave member-2 dead");
    const joins = others.map(({ events }) => events().filter((event) => event === "join member-2").length);
    process.kill(second.child.pid, "SIGCONT");
    for (const [at, { name, events }] of others.entries()) {
      await waitFor(`${name} has it back`, WAIT_MS, () => {
        return events().filter((event) => event === "join member-2").length > (joins[at] ?? 0);
      });
    }
    assert.ok(!second.events().some((event) => event.startsWith("leave")));
  });

  await t.test("SIGKILL is a death, SIGTERM a leave without a suspicion", async () => {
    process.kill(third.child.pid, "SIGKILL");
    await allHear([first, second, fourth], "leave member-3 dead");
    await fourth.child.stop();
    await allHear([first, second], "leave member-4 left");
    for (const { events } of [first, second]) assert.ok(!events().includes("suspect member-4"));
  });
});

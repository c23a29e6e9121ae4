/**
 * `node tests/bench/membership.ts [MEMBERS] [SECONDS]`: the share of a core that a member of a cluster at rest needs, each in a
 * process of its own, as 30 are on 30 machines; whether any of them suspected another meanwhile; and when all of them know that one
 * was killed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMemberProcesses } from "../support/member-processes.ts";
import { waitFor } from "../support/wait.ts";

const MIB = 2 ** 20;
const WAIT_MS = 60_000;
const count = Number(process.argv[2] ?? 30);
const seconds = Number(process.argv[3] ?? 30);

const members = await startMemberProcesses(count);
try {
  // The first push/pulls come close together.
  await sleep(10_000);
  const cpu = () =>
    members.map(({ child }) => {
      const { userMs, systemMs } = child.cpu();
      return userMs + systemMs;
    });
  const before = cpu();
  const startMs = performance.now();
  await sleep(seconds * 1_000);
  const passedMs = performance.now() - startMs;
  const shares = cpu()
    .map((ms, at) => (100 * (ms - (before[at] ?? 0))) / passedMs)
    .sort((one, other) => one - other);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const resident = members.reduce((sum, { child }) => sum + child.residentBytes(), 0) / members.length / MIB;
  const told = members.flatMap(({ events }) => events()).filter((event) => !event.startsWith("join "));
  console.log(`${count} members at rest for ${seconds} s: of a core each`);
  console.log(`  mean ${mean.toFixed(2)} %, least ${shares[0]?.toFixed(2)} %, most ${shares.at(-1)?.toFixed(2)} %`);
  console.log(
    `  ${resident.toFixed(0)} MiB each; events that are no join: ${told.length === 0 ? "none" : told.join(", ")}`,
  );
  const victim = members.at(-1);
  if (victim === undefined) throw new Error("there are no members");
  const killedMs = performance.now();
  process.kill(victim.child.pid, "SIGKILL");
  const times = await Promise.all(
    members.slice(0, -1).map(async ({ name, events }) => {
      await waitFor(`${name} knows`, WAIT_MS, () => events().includes(`leave ${victim.name} dead`));
      return performance.now() - killedMs;
    }),
  );
  console.log(
    `  one is killed: first known after ${Math.min(...times).toFixed()} ms, by all ${Math.max(...times).toFixed()} ms`,
  );
} finally {
  await Promise.all(members.map(({ child }) => (child.status() === undefined ? child.stop(20_000) : undefined)));
}

/**
 * `node tests/bench/membership.ts [MEMBERS] [SECONDS]`: the share of a core that a member of a cluster at rest needs, each in a
 * process of its own, as 30 are on 30 machines; and whether any of them suspected another meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMemberProcesses } from "../support/member-processes.ts";

const MIB = 2 ** 20;
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
} finally {
  await Promise.all(members.map(({ child }) => child.stop(20_000)));
}

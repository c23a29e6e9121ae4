/**
 * A member in a process of its own: `member-entry.ts NAME KEY-HEX [HOST:PORT]`. Prints its port, and what it is told, a line each;
 * leaves and ends on SIGTERM.
 */
import { startLiveMember } from "./live-member.ts";

const [name = "", key = "", join] = process.argv.slice(2);
const member = await startLiveMember(name, Buffer.from(key, "hex"), "127.0.0.1", (event) => console.log(event));
const end = async (): Promise<void> => {
  await member.membership.leave(5_000);
  await member.kill();
  process.exit(0);
};
process.once("SIGTERM", () => void end());
if (join !== undefined) await member.membership.join([join]);
console.log(`port ${member.port}`);

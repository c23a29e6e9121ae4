import { knot } from "../support/peers/knot.ts";
import { nsd } from "../support/peers/nsd.ts";
import { type ServerProgram, startServer } from "../support/server.ts";
import { signpost, signpostExists } from "../support/signpost.ts";
import { markdown, median } from "./table.ts";
import { writeMillionZone } from "./zone.ts";

type LoadSample = { readonly readyMs: number; readonly cpuMs: number; readonly residentBytes: number };

/** Starts a server on the zone of one million A records and measures it at its first right answer. */
async function loadOnce(program: ServerProgram, zone: { name: string; file: string }): Promise<LoadSample> {
  await using server = await startServer(program, { zones: [zone], readyWithinMs: 120_000 });
  const { userMs, systemMs } = server.cpu();
  return { readyMs: server.readyAfterMs, cpuMs: userMs + systemMs, residentBytes: server.rss() };
}

/** A Markdown table of the time from process start to first right answer, and of resident memory then; medians. */
export async function measureLoad(directory: string, rounds: number): Promise<string> {
  const zone = await writeMillionZone(directory);
  const programs = [...(signpostExists() ? [signpost] : []), nsd, knot];
  const samples = new Map<string, LoadSample[]>(programs.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const program of programs) {
      const sample = await loadOnce(program, zone);
      console.error(`load, round ${round}: ${program.name} ${Math.round(sample.readyMs)} ms`);
      samples.get(program.name)?.push(sample);
    }
  }
  const readyMs = (name: string) => median((samples.get(name) ?? []).map((sample) => sample.readyMs));
  const rows = programs.map(({ name }) => {
    const own = samples.get(name) ?? [];
    const mebibytes = median(own.map(({ residentBytes }) => residentBytes)) / 1_048_576;
    return [
      name,
      (readyMs(name) / 1000).toFixed(2),
      (median(own.map(({ cpuMs }) => cpuMs)) / 1000).toFixed(2),
      mebibytes.toFixed(0),
      (readyMs(name) / readyMs("knot")).toFixed(2),
      (readyMs(name) / readyMs("nsd")).toFixed(2),
    ];
  });
  const heading = ["server", "first answer s", "CPU s until then", "resident MiB", "time vs knot", "time vs nsd"];
  return markdown(heading, rows);
}

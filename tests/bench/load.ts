import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openDataDirectory } from "../../src/node/data-directory.ts";
import { nodeKeys } from "../../src/node/keys.ts";
import { nodeIdOf } from "../../src/node/node-id.ts";
import { openStore } from "../../src/store/open-store.ts";
import { knot } from "../support/peers/knot.ts";
import { nsd } from "../support/peers/nsd.ts";
import { type ServerProgram, startServer } from "../support/server.ts";
import { signpost, signpostExists } from "../support/signpost.ts";
import { recordBody, zoneBody } from "../support/store-objects.ts";
import { markdown, median } from "./table.ts";
import { MILLION, millionAddress, writeMillionZone } from "./zone.ts";

type LoadSample = { readonly readyMs: number; readonly cpuMs: number; readonly residentBytes: number };

/** Starts a server on the zone of one million A records and measures it at its first right answer. */
async function loadOnce(program: ServerProgram, zone: { name: string; file: string }): Promise<LoadSample> {
  await using server = await startServer(program, { zones: [zone], readyWithinMs: 120_000 });
  const { userMs, systemMs } = server.cpu();
  return { readyMs: server.readyAfterMs, cpuMs: userMs + systemMs, residentBytes: server.rss() };
}

const SLICE = 5_000;

/** The records of that zone, straight into the store of a node that does not run. */
async function fillStore(data: string, zoneName: string): Promise<void> {
  await mkdir(data);
  const { key, release } = openDataDirectory(data, undefined);
  const secretKey = nodeKeys(key, undefined).store;
  const store = await openStore({ directory: data, nodeId: nodeIdOf(data, undefined), secretKey });
  const zone = `${zoneName}.`;
  await store.write((tx) => {
    tx.put("zone", zoneBody(zone, { id: "zon_million" }));
    tx.setState(zone, "active");
    tx.put("record", recordBody(zone, "ns1", { id: "rec_ns1", values: [{ value: "10.255.255.1" }] }));
  });
  for (let first = 0; first < MILLION; first += SLICE) {
    await store.write((tx) => {
      for (let index = first; index < first + SLICE; index++) {
        const values = [{ value: millionAddress(index) }];
        tx.put("record", recordBody(zone, `host-${index}`, { id: `rec_${index}`, values }));
      }
    });
  }
  await store[Symbol.asyncDispose]();
  release();
}

/** Ours as it starts again: its zones are in its store, and no zone file is read. */
function restarted(data: string): ServerProgram {
  return {
    ...signpost,
    configure: async (directory, port) => {
      const { args, env } = await signpost.configure(directory, port, []);
      return { args, env: { ...env, SVC_NODE_DATA_DIR: data } };
    },
  };
}

/**
 * A Markdown table of the time from process start to first right answer, and of resident memory then; medians. The
 * peers read a zone file of what our store holds.
 */
export async function measureLoad(directory: string, rounds: number): Promise<string> {
  const zone = await writeMillionZone(directory);
  const data = join(directory, "million");
  await fillStore(data, zone.name);
  const programs = [...(signpostExists() ? [restarted(data)] : []), nsd, knot];
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

/** What scenarios of events have in common: checks that fail, and the figures of sending. */
import assert from "node:assert/strict";
import { freePort } from "../support/ports.ts";
import { waitFor } from "../support/wait.ts";
import type { ApiClient } from "./api-client.ts";
import type { ScenarioNode } from "./running-node.ts";

export const WAIT_MS = 30_000;

export async function create(api: ApiClient, path: string, json: object): Promise<string> {
  const { status, body } = await api.ask("POST", path, json);
  assert.equal(status, 200, JSON.stringify(body));
  return body.id;
}

/** A check that soon finds that nobody listens, which makes one event. */
export async function failingCheck(api: ApiClient, name: string): Promise<string> {
  return await create(api, "/healthchecks", {
    name,
    protocol: "tcp",
    target: `127.0.0.1:${await freePort()}`,
    interval_seconds: 1,
    failure_threshold: 1,
  });
}

async function figureIfThere(node: ScenarioNode, series: string): Promise<number | undefined> {
  const text = await (await node.get("/metrics")).text();
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

/** The figure of a metric with these labels, as they are written. */
export async function figure(node: ScenarioNode, series: string): Promise<number> {
  const value = await figureIfThere(node, series);
  assert.ok(value !== undefined, `${series} is not among the metrics`);
  return value;
}

/** Threads hand their figures in from time to time: a series of something new is not there at once. */
export async function untilFigure(node: ScenarioNode, series: string, wanted: number): Promise<void> {
  await waitFor(`${series} is ${wanted}`, WAIT_MS, async () => (await figureIfThere(node, series)) === wanted, 50);
}

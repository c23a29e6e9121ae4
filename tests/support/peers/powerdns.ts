import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { freePort } from "../ports.ts";
import { type Child, startChild } from "../process.ts";
import { findProgram } from "../server.ts";
import { waitFor } from "../wait.ts";

export type PowerdnsBackend = "sqlite" | "lmdb";

/** PowerDNS with its REST API, in a child process. */
export type Powerdns = {
  readonly child: Child;
  /** "http://127.0.0.1:49153" */
  readonly api: string;
  readonly key: string;
  readonly stop: () => Promise<void>;
};

const SQLITE_SCHEMA = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";
const START_MS = 20_000;
const KEY = "key-of-the-benchmark";

/** The default of the LMDB backend, mapasync, flushes some time later: not what a 2xx is to mean here. */
const LMDB_LINES = ["launch=lmdb", "lmdb-sync-mode=sync"];

/** An empty SQLite database in `directory`, and the lines of configuration that name it. */
export function createPowerdnsSqlite(directory: string): {
  readonly database: DatabaseSync;
  readonly lines: readonly string[];
} {
  const file = join(directory, "pdns.sqlite3");
  const database = new DatabaseSync(file);
  // The faster of SQLite's durable journals: a commit is one flush.
  database.exec("PRAGMA journal_mode=WAL");
  database.exec(readFileSync(SQLITE_SCHEMA, "utf8"));
  return { database, lines: ["launch=gsqlite3", `gsqlite3-database=${file}`, "gsqlite3-pragma-synchronous=2"] };
}

function backendLines(backend: PowerdnsBackend, directory: string): readonly string[] {
  if (backend === "lmdb") return [...LMDB_LINES, `lmdb-filename=${join(directory, "pdns.lmdb")}`];
  const { database, lines } = createPowerdnsSqlite(directory);
  database.close();
  return lines;
}

/** undefined: not installed. */
export async function startPowerdns(backend: PowerdnsBackend): Promise<Powerdns | undefined> {
  const path = findProgram("pdns_server");
  if (path === undefined) return undefined;
  const directory = await mkdtemp(join(tmpdir(), "signpost-powerdns-"));
  const port = await freePort();
  const lines = [
    ...backendLines(backend, directory),
    "local-address=127.0.0.1",
    `local-port=${await freePort()}`,
    "api=yes",
    `api-key=${KEY}`,
    "webserver=yes",
    `webserver-port=${port}`,
    "webserver-loglevel=none",
    "webserver-max-bodysize=64",
    "loglevel=3",
    `socket-dir=${directory}`,
    "daemon=no",
    "guardian=no",
    "setuid=",
    "setgid=",
  ];
  await writeFile(join(directory, "pdns.conf"), `${lines.join("\n")}\n`);
  const child = await startChild(`pdns-${backend}`, path, [`--config-dir=${directory}`]);
  const stop = async () => {
    if (child.status() === undefined) await child.stop();
    await rm(directory, { recursive: true, force: true });
  };
  const api = `http://127.0.0.1:${port}`;
  const isUp = async () => {
    if (child.status() !== undefined) throw new Error(`${child.name} ended at its start\n${child.output()}`);
    const options = { headers: { "x-api-key": KEY } };
    return (await fetch(`${api}/api/v1/servers/localhost`, options).catch(() => undefined))?.ok;
  };
  await waitFor(`${child.name} answers`, START_MS, isUp).catch(async (error) => {
    await stop();
    throw error;
  });
  return { child, api, key: KEY, stop };
}

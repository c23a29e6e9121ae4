/** gdnsd and PowerDNS with the same names and values as our selected zones, by what each of them has for it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gdnsdWith } from "../support/peers/gdnsd.ts";
import { createPowerdnsSqlite } from "../support/peers/powerdns.ts";
import type { ServerProgram, ZoneSource } from "../support/server.ts";
import {
  addressesOf,
  type BackendPorts,
  hostName,
  NAMES,
  type SelectedZone,
  subnetRegions,
  TTL,
  WEIGHTS,
  zoneName,
} from "./selected-zones.ts";

const SERVICE_UP = "probed";
const SERVICE_PARTLY_DOWN = "partly";
/** The longest that gdnsd has. */
const INTERVAL_SECONDS = 255;

/** What gdnsd chooses with, as a part of "plugins". `undefined`: gdnsd has nothing of the kind. */
function gdnsdPlugin({ choice }: SelectedZone): "none" | "multifo" | "weighted" | "metafo" | "geoip" | undefined {
  switch (choice) {
    case "static":
      return "none";
    case "gated":
    case "round-robin":
      return "multifo";
    case "weighted":
      return choice;
    case "failover":
      return "metafo";
    case "region":
    case "geo-failover":
      return "geoip";
    case "affinity":
    case "latency":
      return undefined;
  }
}

export function isKnownToGdnsd(zone: SelectedZone): boolean {
  return gdnsdPlugin(zone) !== undefined;
}

/** LUA's pickwrandom knows no health. */
export function isKnownToPowerdns({ choice, hasDown }: SelectedZone): boolean {
  return choice === "weighted" && !hasDown;
}

function resourceName(zone: SelectedZone, index: number): string {
  return `${zone.name}-${index}`;
}

function gdnsdZoneFile(zone: SelectedZone): string {
  const lines = [
    `$ORIGIN ${zoneName(zone)}.`,
    `$TTL ${TTL}`,
    "@ SOA ns1 hostmaster 1 7200 900 1209600 300",
    "@ NS ns1",
    "ns1 A 10.255.255.1",
  ];
  const plugin = gdnsdPlugin(zone);
  for (let index = 0; index < NAMES; index++) {
    if (plugin === "none")
      for (const address of addressesOf(zone, index)) lines.push(`${hostName(index)} A ${address}`);
    else lines.push(`${hostName(index)} DYNA ${plugin}!${resourceName(zone, index)}`);
  }
  return `${lines.join("\n")}\n`;
}

function gdnsdResource(zone: SelectedZone, index: number): string {
  const addresses = addressesOf(zone, index);
  const service = zone.hasDown ? SERVICE_PARTLY_DOWN : SERVICE_UP;
  const of = (entries: readonly string[]) =>
    `  ${resourceName(zone, index)} => { service_types => ${service}, ${entries.join(", ")} }`;
  switch (gdnsdPlugin(zone)) {
    case "weighted":
      return of(addresses.map((address, place) => `v${place} => [ ${address}, ${WEIGHTS[place]} ]`));
    case "metafo": {
      const places = addresses.map((_, place) => `dc${place}`);
      const map = addresses.map((address, place) => `dc${place} => ${address}`);
      return of([`datacenters => [ ${places.join(", ")} ]`, `dcmap => { ${map.join(", ")} }`]);
    }
    case "geoip": {
      const [first, second, third, fourth] = addresses;
      return of(["map => clients", `dcmap => { west => [ ${first}, ${second} ], east => [ ${third}, ${fourth} ] }`]);
    }
    default:
      return of(addresses.map((address, place) => `v${place} => ${address}`));
  }
}

function resourcesOf(zones: readonly SelectedZone[], plugin: string): string[] {
  const own = zones.filter((zone) => gdnsdPlugin(zone) === plugin);
  return own.flatMap((zone) => Array.from({ length: NAMES }, (_, index) => gdnsdResource(zone, index)));
}

function gdnsdLines(zones: readonly SelectedZone[], ports: BackendPorts): string[] {
  const service = (name: string, port: number) =>
    `  ${name} => { plugin => tcp_connect, port => ${port}, interval => ${INTERVAL_SECONDS}, timeout => 5, down_thresh => 1, ok_thresh => 1 }`;
  const nets = [...subnetRegions()].map(([subnet, region]) => `    ${subnet} => ${region}`);
  const plugin = (name: string, before: readonly string[], after: readonly string[]) => {
    const resources = resourcesOf(zones, name);
    return resources.length === 0 ? [] : [`${name} => {`, ...before, ...resources, ...after, "}"];
  };
  return [
    "service_types => {",
    service(SERVICE_UP, ports.up),
    service(SERVICE_PARTLY_DOWN, ports.partlyDown),
    "}",
    "plugins => {",
    ...plugin("multifo", [], []),
    // A single value that is left is enough, as it is for ours.
    ...plugin("weighted", ["up_thresh => 0.01"], []),
    ...plugin("metafo", ["resources => {"], ["}"]),
    ...plugin(
      "geoip",
      ["maps => { clients => { datacenters => [ west, east ], nets => {", ...nets, "} } }", "resources => {"],
      ["}"],
    ),
    "}",
  ];
}

/** gdnsd, and the zones of these that it has anything for; their files are written into `directory`. */
export async function selectedGdnsd(
  directory: string,
  zones: readonly SelectedZone[],
  ports: BackendPorts,
): Promise<{ readonly program: ServerProgram; readonly sources: readonly ZoneSource[] }> {
  const known = zones.filter(isKnownToGdnsd);
  const sources: ZoneSource[] = [];
  for (const zone of known) {
    const file = join(directory, `${zoneName(zone)}.gdnsd`);
    await writeFile(file, gdnsdZoneFile(zone));
    sources.push({ name: zoneName(zone), file });
  }
  return { program: gdnsdWith(gdnsdLines(known, ports)), sources };
}

function luaOf(zone: SelectedZone, index: number): string {
  const pairs = addressesOf(zone, index).map((address, place) => `{${WEIGHTS[place]},'${address}'}`);
  return `A "pickwrandom({${pairs.join(",")}})"`;
}

/** PowerDNS with LUA records in SQLite, one thread. */
export function selectedPowerdns(zones: readonly SelectedZone[]): ServerProgram {
  return {
    name: "powerdns",
    command: "pdns_server",
    configure: async (directory, port) => {
      const { database, lines } = createPowerdnsSqlite(directory);
      const addZone = database.prepare("INSERT INTO domains (id, name, type) VALUES (?, ?, 'NATIVE')");
      const addRecord = database.prepare(
        "INSERT INTO records (domain_id, name, type, content, ttl, prio, disabled, auth) VALUES (?, ?, ?, ?, ?, 0, 0, 1)",
      );
      database.exec("BEGIN");
      for (const [id, zone] of zones.filter(isKnownToPowerdns).entries()) {
        const name = zoneName(zone);
        addZone.run(id + 1, name);
        addRecord.run(id + 1, name, "SOA", `ns1.${name} hostmaster.${name} 1 7200 900 1209600 300`, TTL);
        addRecord.run(id + 1, name, "NS", `ns1.${name}`, TTL);
        for (let index = 0; index < NAMES; index++) {
          addRecord.run(id + 1, `${hostName(index)}.${name}`, "LUA", luaOf(zone, index), TTL);
        }
      }
      database.exec("COMMIT");
      database.close();
      const settings = [
        ...lines,
        "enable-lua-records=yes",
        "receiver-threads=1",
        "distributor-threads=1",
        "local-address=127.0.0.1",
        `local-port=${port}`,
        "loglevel=3",
        `socket-dir=${directory}`,
        "daemon=no",
        "guardian=no",
        "setuid=",
        "setgid=",
      ];
      await writeFile(join(directory, "pdns.conf"), `${settings.join("\n")}\n`);
      return { args: [`--config-dir=${directory}`] };
    },
  };
}

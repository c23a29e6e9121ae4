/** Zones whose answers are chosen, one a workload, each of as many names: what our records, gdnsd's and PowerDNS's are made from. */
import { seededChance } from "../support/chance.ts";

export const NAMES = 10_000;
/** Sets of four values; two names of each zone share one, and the zones share all of them. */
const POOLS = 5_000;
/** Sets with a value that is down. Few, because they are probed at work: three failures in a row take three intervals. */
const DOWN_POOLS = 16;
const POOL_VALUES = 4;
export const TTL = 60;
export const WEIGHTS = [40, 30, 20, 10] as const;
/** The value of a set that is down, by its place. */
export const DOWN = 0;
const QUERY_LINES = 200_000;
const SEED = 20261;

/** How the values of a set are chosen among. "static": not at all, and nothing is probed. */
export type Choice =
  | "static"
  | "gated"
  | "weighted"
  | "failover"
  | "round-robin"
  | "region"
  | "geo-failover"
  | "affinity"
  | "latency";

export type SelectedZone = {
  /** Of the workload; its zone is `<name>.test`. */
  readonly name: string;
  readonly choice: Choice;
  /** Values of the name with that number. */
  readonly valueCount: (index: number) => number;
  /** Whether one value of each name is down. */
  readonly hasDown: boolean;
  /** How many values an answer has that is right, for the name with that number. */
  readonly answered: (index: number) => number;
};

const four = () => POOL_VALUES;
const one = () => 1;
/** The values of a region: places 0 and 1 are west, 2 and 3 east. */
const two = () => 2;

/** The first two choose nothing: they are what the others are held against. */
export const STATIC_ONE = "steer-static";
export const STATIC_FOUR = "steer-static-4";

export const SELECTED_ZONES: readonly SelectedZone[] = [
  { name: STATIC_ONE, choice: "static", valueCount: one, hasDown: false, answered: one },
  { name: STATIC_FOUR, choice: "static", valueCount: four, hasDown: false, answered: four },
  { name: "gated", choice: "gated", valueCount: four, hasDown: false, answered: four },
  { name: "weighted", choice: "weighted", valueCount: four, hasDown: false, answered: one },
  { name: "weighted-down", choice: "weighted", valueCount: four, hasDown: true, answered: one },
  { name: "failover", choice: "failover", valueCount: (index) => 2 + (index % 3), hasDown: false, answered: one },
  { name: "round-robin", choice: "round-robin", valueCount: four, hasDown: false, answered: four },
  { name: "region", choice: "region", valueCount: four, hasDown: false, answered: two },
  { name: "geo-failover", choice: "geo-failover", valueCount: four, hasDown: false, answered: two },
  { name: "affinity", choice: "affinity", valueCount: four, hasDown: false, answered: one },
  { name: "latency", choice: "latency", valueCount: four, hasDown: false, answered: one },
];

/** Ports of the backends: one is up everywhere, one is down for the value at DOWN. */
export type BackendPorts = { readonly up: number; readonly partlyDown: number };

export function zoneName({ name }: SelectedZone): string {
  return `${name}.test`;
}

export function hostName(index: number): string {
  return `host-${index}`;
}

/** The last byte tells the place of the value in its set. */
export function placeOf(lastByte: number): number {
  return (lastByte - 1) % POOL_VALUES;
}

function downAddress(pool: number, place: number): string {
  return `127.100.${pool}.${place + 1}`;
}

export function addressesOf({ hasDown, valueCount }: SelectedZone, index: number): readonly string[] {
  return Array.from({ length: valueCount(index) }, (_, place) => {
    if (hasDown) return downAddress(index % DOWN_POOLS, place);
    const number = (index % POOLS) * POOL_VALUES + place;
    return `127.${1 + (number >> 14)}.${(number >> 7) & 127}.${1 + (number & 127)}`;
  });
}

/** Where the backend that is partly down listens. */
export function partlyDownAddresses(): readonly string[] {
  const addresses: string[] = [];
  for (let pool = 0; pool < DOWN_POOLS; pool++) {
    for (let place = 0; place < POOL_VALUES; place++) if (place !== DOWN) addresses.push(downAddress(pool, place));
  }
  return addresses;
}

export function regionOf(place: number): "west" | "east" {
  return place < 2 ? "west" : "east";
}

const MAPPINGS = 1_000;

/** Subnets by region: the clients of the benchmark are west, within a larger network that is east. */
export function subnetRegions(): ReadonlyMap<string, "west" | "east"> {
  const regions = new Map<string, "west" | "east">([
    ["127.0.0.0/8", "east"],
    ["127.0.0.0/24", "west"],
  ]);
  for (let index = 0; regions.size < MAPPINGS; index++) {
    regions.set(`10.${index >> 8}.${index & 255}.0/24`, index % 2 === 0 ? "west" : "east");
  }
  return regions;
}

/** Values are probed once in the measured time at most, but for those that have to become unhealthy first. */
const UP_INTERVAL_SECONDS = 3_600;
const DOWN_INTERVAL_SECONDS = 10;
const TIMEOUT_SECONDS = 5;

function templateOf({ choice, hasDown }: SelectedZone, ports: BackendPorts): object {
  if (choice === "static") return {};
  return {
    health_check_template: {
      protocol: "tcp",
      port: hasDown ? ports.partlyDown : ports.up,
      interval_seconds: hasDown ? DOWN_INTERVAL_SECONDS : UP_INTERVAL_SECONDS,
      timeout_seconds: TIMEOUT_SECONDS,
    },
  };
}

function policyOf(choice: Choice, addresses: readonly string[]): object {
  switch (choice) {
    case "static":
    case "gated":
      return {};
    case "weighted":
      return {
        lb_policy: {
          method: choice,
          value_weights: Object.fromEntries(addresses.map((value, place) => [value, WEIGHTS[place]])),
        },
      };
    case "affinity":
      return { lb_policy: { method: "round-robin", client_affinity: true } };
    default:
      return { lb_policy: { method: choice } };
  }
}

/** The zone as POST /zones/import takes it. */
export function bundleOf(zone: SelectedZone, ports: BackendPorts): string {
  const records = Array.from({ length: NAMES }, (_, index) => {
    const addresses = addressesOf(zone, index);
    const isRegional = zone.choice === "region" || zone.choice === "geo-failover";
    const values = addresses.map((value, place) => (isRegional ? { value, region: regionOf(place) } : { value }));
    const rules = { ...policyOf(zone.choice, addresses), ...templateOf(zone, ports) };
    return { name: hostName(index), type: "A", ttl: TTL, values, ...rules };
  });
  return JSON.stringify({ zones: [{ name: `${zoneName(zone)}.`, records }] });
}

/** Distinct values that are probed for these zones, and how many of them end as unhealthy. */
export function probesOf(zones: readonly SelectedZone[]): { readonly healthy: number; readonly unhealthy: number } {
  const healthy = new Set<string>();
  const unhealthy = new Set<string>();
  for (const zone of zones) {
    if (zone.choice === "static") continue;
    for (let index = 0; index < NAMES; index++) {
      for (const [place, address] of addressesOf(zone, index).entries()) {
        (zone.hasDown && place === DOWN ? unhealthy : healthy).add(address);
      }
    }
  }
  return { healthy: healthy.size, unhealthy: unhealthy.size };
}

/** A file of dnsperf's: every name about as often, in random order. */
export function queryLines(zone: SelectedZone): string {
  const { below } = seededChance(SEED);
  return Array.from({ length: QUERY_LINES }, () => `${hostName(below(NAMES))}.${zoneName(zone)} A`).join("\n");
}

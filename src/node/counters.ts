import { Counter, type Registry } from "prom-client";

/** Counters whose totals somebody else keeps: name, help, and what the total is now. */
export function registerCounters(
  registry: Registry,
  totals: readonly (readonly [name: string, help: string, read: () => number])[],
): void {
  for (const [name, help, read] of totals) {
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
}

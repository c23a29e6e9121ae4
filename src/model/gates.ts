/**
 * What publishing asks of health: a slot for every value that a probe gates. Whoever has the slots knows by that which
 * records are gated, and by what.
 */
import type { HealthCheckTemplate, LbPolicy, RecordType } from "./objects.ts";

export type GatedRRset = {
  /** Name of the zone, empty for an override. */
  readonly zone: string;
  /** As the record has it: relative, "@" at the apex; absolute for an override. */
  readonly name: string;
  readonly type: RecordType;
  /** Of the record or the override. */
  readonly id: string;
  readonly template: HealthCheckTemplate;
  readonly values: readonly {
    /** An address or a host name. */
    readonly value: string;
    /** Of SRV, where the template names no port. */
    readonly port?: number;
    /** The region that it is in by its tag or by the subnet map. */
    readonly region?: string;
  }[];
  readonly method: LbPolicy["method"] | undefined;
};

export type Gates = {
  /**
   * The RRset is about to be in the image: the health slot of each value, 0 where it cannot be probed. In place of what was
   * gated at its zone, name and type before. What that held is given back at `settle`.
   */
  readonly gate: (rrset: GatedRRset) => readonly number[];
  /** The zone has no gated RRset of that name and type any more. */
  readonly ungate: (zone: string, name: string, type: RecordType) => void;
  /** A zone is built beside the one that answers: what is not gated from here to `endZone` is gated no more. */
  readonly beginZone: (zone: string) => void;
  readonly endZone: (zone: string) => void;
  /** The zone is gone, with all that it gated. */
  readonly ungateZone: (zone: string) => void;
  /** Nothing waits to be published, and nothing is half-made: no RRset of the image names what is given back. */
  readonly settle: () => void;
};

/** For a publisher whose records nobody probes. */
export const NO_GATES: Gates = {
  gate: ({ values }) => values.map(() => 0),
  ungate: () => {},
  beginZone: () => {},
  endZone: () => {},
  ungateZone: () => {},
  settle: () => {},
};

/** One node for many tests of forwarding. */
import { type Forwarding, type ForwardingSetup, startForwarding } from "./forward-world.ts";
import { PATIENT_MAIN } from "./running-node.ts";
import { sharedNode } from "./shared-node.ts";

export type SharedSetup = Omit<ForwardingSetup, "node" | "zones" | "listen" | "env" | "main" | "directory">;

/**
 * What `startForwarding` does, with one node (and one patient one) for all tests of a file, one after the other. Each finds
 * it as a new one is but for its counters and its log; upstreams are others each time. To be called outside of tests.
 */
export function sharedForwarding(): (setup?: SharedSetup) => Promise<Forwarding> {
  const usual = sharedNode();
  const patient = sharedNode({ main: PATIENT_MAIN });
  return async (setup = {}) => {
    const node = await (setup.isPatient === true ? patient() : usual());
    return await startForwarding({ ...setup, node });
  };
}

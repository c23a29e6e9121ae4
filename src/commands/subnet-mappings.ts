/** Writes of subnet mappings, and the regions that they name. */
import { SUBNET_MAPPINGS_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { type SubnetMappingCreate, subnetMappingFromCreate } from "../model/subnet-mapping.ts";
import { LIST_PAGE_MAX, type StoreReader } from "../store/store.ts";
import { noteDelete, noteWrite, type WriteOutcome } from "./audit-outcome.ts";
import { permitUnconfined } from "./permit.ts";
import { type Caller, type CommandContext, newId, requireById, requireMatch, runCommand } from "./run.ts";
import { scanSlices } from "./scan.ts";

/** Creates a mapping as one command; one of the same subnet is replaced and its id stays. */
export function createSubnetMapping(
  context: CommandContext,
  caller: Caller,
  given: SubnetMappingCreate,
): Promise<WriteOutcome<"subnet-mapping">> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write subnet mappings");
    const made = subnetMappingFromCreate(given, newId("subnet-mapping"));
    const before = tx.get("subnet-mapping", [made.subnet]);
    if (before === undefined && tx.count("subnet-mapping") >= SUBNET_MAPPINGS_MAX) {
      throw new Refusal("conflict", `there are ${SUBNET_MAPPINGS_MAX} mappings, and there may not be more`);
    }
    const stored = tx.put("subnet-mapping", before === undefined ? made : { ...made, id: before.body.id });
    const outcome = { stored, before };
    noteWrite(tx, "create", outcome, made.subnet);
    return outcome;
  });
}

/** Deletes a mapping as one command. Returns its own id. */
export function deleteSubnetMapping(context: CommandContext, caller: Caller, id: string): Promise<string> {
  return runCommand(context, caller, (tx) => {
    permitUnconfined(caller, "write subnet mappings");
    const stored = requireById(tx, "subnet-mapping", id);
    requireMatch(caller, stored);
    tx.delete("subnet-mapping", stored.key);
    noteDelete(tx, stored, stored.body.subnet);
    return stored.body.id;
  });
}

/** The regions of all mappings and of all nodes: each once, in the order of their text. `nodeRegion`: this node's own. */
export async function listRegions(
  store: Pick<StoreReader, "list">,
  nodeRegion: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const regions = new Set(nodeRegion === undefined || nodeRegion === "" ? [] : [nodeRegion]);
  for await (const slice of scanSlices(store, "subnet-mapping", { signal })) {
    for (const { body } of slice) regions.add(body.region_id);
  }
  for (const { body } of store.list("node", { limit: LIST_PAGE_MAX })) if (body.region !== "") regions.add(body.region);
  return [...regions].sort();
}

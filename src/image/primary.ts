/** What answer threads may hand over for the sake of updaters and secondaries. */
import { CONTROL, PRIMARY, type SharedImage } from "./shared.ts";

/** For `control` alone; every thread that answers sees it with its next query. */
export function setPrimary(
  shared: SharedImage,
  { updates, transfers }: { readonly updates: boolean; readonly transfers: boolean },
): void {
  const bits = (updates ? PRIMARY.UPDATES : 0) | (transfers ? PRIMARY.TRANSFERS : 0);
  Atomics.store(new Int32Array(shared.control), CONTROL.PRIMARY, bits);
}

/** How every format says that a zone holds more than one import may bring. */
import { IMPORT_ZONE_RECORDS_MAX } from "../model/limits.ts";

export function overLimitText(zone: string): string {
  return `more than ${IMPORT_ZONE_RECORDS_MAX} records for the zone ${zone}`;
}

/** Mappings from the subnet that a query comes from to a region. */
import Type, { type Static } from "typebox";
import { cidrFromText, ipToText } from "../base/ip.ts";
import { REGION_PATTERN } from "./lb-policy.ts";
import * as limits from "./limits.ts";
import type { SubnetMappingBody } from "./objects.ts";
import type { ViewTimes } from "./record.ts";
import { type FieldFault, refuseFaults } from "./refusal.ts";

/** What a person may write; others are written by discovery. */
export const MANUAL_SOURCE = "manual";

export const SubnetMappingCreate = Type.Object(
  {
    subnet: Type.String({
      minLength: 1,
      maxLength: 43,
      description: "CIDR without host bits.",
      examples: ["192.0.2.0/24"],
    }),
    region_id: Type.String({ minLength: 1, maxLength: limits.REGION_MAX, pattern: REGION_PATTERN }),
    source: Type.Optional(Type.String({ maxLength: 64, description: "Nothing but `manual`." })),
  },
  { additionalProperties: false },
);
export type SubnetMappingCreate = Static<typeof SubnetMappingCreate>;

export const SubnetMappingView = Type.Object({
  id: Type.String(),
  subnet: Type.String(),
  region_id: Type.String(),
  source: Type.String(),
  created_at: Type.String({ format: "date-time" }),
  updated_at: Type.String({ format: "date-time" }),
});

export function subnetMappingView(mapping: SubnetMappingBody, times: ViewTimes): Record<string, unknown> {
  return { ...mapping, created_at: times.createdAt, updated_at: times.updatedAt };
}

/** The one spelling of a subnet; undefined: it is none. */
export function canonicalSubnet(text: string): string | undefined {
  const cidr = cidrFromText(text);
  return cidr === undefined ? undefined : `${ipToText(cidr.address)}/${cidr.prefixBits}`;
}

/** The body of a mapping. Throws `invalid_request` with every fault. */
export function subnetMappingFromCreate(given: SubnetMappingCreate, id: string): SubnetMappingBody {
  const faults: FieldFault[] = [];
  const cidr = cidrFromText(given.subnet);
  if (cidr === undefined)
    faults.push({ pointer: "/subnet", detail: "must be a subnet such as 192.0.2.0/24 or 2001:db8::/32" });
  else if (cidr.hostBitsSet)
    faults.push({ pointer: "/subnet", detail: `has bits set behind its prefix of ${cidr.prefixBits}` });
  if (given.source !== undefined && given.source !== MANUAL_SOURCE) {
    faults.push({ pointer: "/source", detail: `must be "${MANUAL_SOURCE}"` });
  }
  refuseFaults(faults);
  return { id, subnet: canonicalSubnet(given.subnet) ?? "", region_id: given.region_id, source: MANUAL_SOURCE };
}

/** Where names are routed to, for the resolver, by the rules by which answers route them. */
import { createRouteProbe, ROUTED, routeOf } from "../answer/route.ts";
import { RCODE, RRTYPE } from "../dns/codes.ts";
import type { Message } from "../dns/message.ts";
import { LOWER, namesEqual } from "../dns/name.ts";
import { readNameKey } from "../image/name-key.ts";
import { CONTROL, type SharedImage } from "../image/shared.ts";
import { enterImage, leaveImage, openView } from "../image/view.ts";
import type { FindDelegation, Routed, RouteName } from "../resolve/resolver-types.ts";
import type { AskOwn } from "./own-answers.ts";

/** `thread` is a place among the readers of the image; nobody may be reading there when the function is called. */
export function createRouteName(shared: SharedImage, thread: number): RouteName {
  const view = openView(shared);
  const probe = createRouteProbe();
  const seed = view.control[CONTROL.HASH_SEED]!;
  return (name, type) => {
    if (readNameKey(probe.key, name, 0, name.length, seed) < 0) return { kind: "none" };
    enterImage(view, thread);
    try {
      return routedOf(routeOf(view, probe, type));
    } finally {
      leaveImage(view, thread);
    }
  };
}

function routedOf(number: number): Routed {
  switch (number) {
    case ROUTED.NONE:
      return { kind: "none" };
    case ROUTED.OWN:
      return { kind: "own" };
    case ROUTED.BLOCKED:
      return { kind: "blocked" };
    default:
      return { kind: "route", number };
  }
}

/** The referral that our zones give for a name, with addresses from any of them. */
export function createFindDelegation(askOwn: AskOwn): FindDelegation {
  return (name) => {
    const referral = askOwn(name, RRTYPE.A);
    if (referral === undefined || referral.rcode !== RCODE.NOERROR || referral.answers.length > 0) return undefined;
    const names = referral.authorities.filter(({ type }) => type === RRTYPE.NS);
    const cut = names[0]?.name;
    if (cut === undefined) return undefined;
    const servers = names.map(({ rdata }) => {
      const glue = addressesOf(referral, rdata);
      return { name: rdata, addresses: glue.length > 0 ? glue : ownAddresses(askOwn, rdata) };
    });
    return { cut: cut.map((byte) => LOWER[byte]!), servers };
  };
}

function addressesOf({ additionals }: Message, name: Uint8Array): readonly Uint8Array[] {
  return additionals.flatMap((record) =>
    (record.type === RRTYPE.A || record.type === RRTYPE.AAAA) && namesEqual(record.name, name) ? [record.rdata] : [],
  );
}

function ownAddresses(askOwn: AskOwn, name: Uint8Array): readonly Uint8Array[] {
  return [RRTYPE.A, RRTYPE.AAAA].flatMap((type) =>
    (askOwn(name, type)?.answers ?? []).flatMap((record) => (record.type === type ? [record.rdata] : [])),
  );
}

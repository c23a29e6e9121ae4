/**
 * A zone as RFC 1035 text, a page of records at a time. What zone files have no words for stands in comments: records
 * without values and the NS that the server makes are read back by the import, policies and regions are only told of.
 */
import { rdataToText } from "../dns/rdata.ts";
import { APEX } from "../model/names.ts";
import type { RecordBody, ZoneBody } from "../model/objects.ts";
import { fqdnOf } from "../model/record.ts";
import { valueRdata } from "../model/record-values.ts";
import type { Store } from "../store/store.ts";
import { scanSlices } from "./scan.ts";
import { autoPopulateMark, synthesisedNsMark } from "./zone-file-marks.ts";

/** Chunks of text. The zone's records are read by key as the reader takes them, so nothing is held between pages. */
export async function* zoneFileText(
  store: Pick<Store, "list" | "get" | "serialOf">,
  zone: ZoneBody,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  yield headText(store, zone);
  for await (const slice of scanSlices(store, "record", { prefix: [zone.name], signal })) {
    let text = "";
    for (const { body, shadowedBy } of slice) text += recordText(zone, body, shadowedBy !== undefined);
    if (text !== "") yield text;
  }
}

function headText(store: Pick<Store, "get" | "serialOf">, zone: ZoneBody): string {
  const { name, default_ttl: ttl, soa } = zone;
  const { mname, rname, refresh, retry, expire, minimum } = soa;
  const serial = store.serialOf(name) ?? 0;
  let text = `$ORIGIN ${name}\n$TTL ${ttl}\n`;
  if (zone.lb_policy !== undefined) text += comment("lb_policy", APEX, JSON.stringify(zone.lb_policy));
  text += `@ ${ttl} IN SOA ${mname} ${rname} ${serial} ${refresh} ${retry} ${expire} ${minimum}\n`;
  // A zone without NS cannot be loaded elsewhere; answers and transfers have this one too.
  if (store.get("record", [name, APEX, "NS"]) === undefined)
    text += `${synthesisedNsMark()}\n@ ${ttl} IN NS ${mname}\n`;
  return text;
}

/** The lines of one record. What is shadowed by another record of its name is in no answer, and so in a comment. */
function recordText(zone: ZoneBody, record: RecordBody, isShadowed: boolean): string {
  // Names are stored as zone files spell them.
  const { name: owner, type, values } = record;
  if (isShadowed) return comment("shadowed", owner, `${type} ${fqdnOf(record)}`);
  let text = "";
  if (record.lb_policy !== undefined)
    text += comment("lb_policy", `${owner} ${type}`, JSON.stringify(record.lb_policy));
  if (record.health_check_template !== undefined)
    text += comment("health_check_template", `${owner} ${type}`, "not kept");
  const regions = values.flatMap(({ value, region }) => (region === undefined ? [] : [`${value}=${region}`]));
  if (regions.length > 0) text += comment("regions", `${owner} ${type}`, regions.join(" "));
  if (values.length === 0) return `${text}${autoPopulateMark(owner, type)}\n`;
  const ttl = record.ttl || zone.default_ttl;
  for (const value of values) {
    const rdata = valueRdata(record, value);
    text += `${owner} ${ttl} IN ${type} ${rdataToText(rdata.type, rdata.wire)}\n`;
  }
  return text;
}

/** One line, whatever the text holds. */
function comment(word: string, subject: string, text: string): string {
  return `; ${word} ${subject} ${text.replaceAll(/[\r\n\0]/g, " ")}\n`;
}

/** Lists of upstreams in forwarders, stub zones and the default forwarder: each one valid, and none of them twice. */
import { parseUpstream, type Upstream, upstreamText } from "../dns/upstream.ts";
import type { FieldFault } from "./refusal.ts";

/** `pointer` is the list's. */
export function upstreamFaults(pointer: string, texts: readonly string[]): readonly FieldFault[] {
  const seen = new Map<string, number>();
  return texts.flatMap((text, index) => {
    const parsed = parseUpstream(text);
    const place = `${pointer}/${index}`;
    if (parsed.kind === "fault") return [{ pointer: place, detail: parsed.detail }];
    const spelling = upstreamText(parsed.upstream);
    const first = seen.get(spelling);
    seen.set(spelling, first ?? index);
    return first === undefined ? [] : [{ pointer: place, detail: `is the same as entry ${first}` }];
  });
}

/** The same of hints of a stub zone, which are asked over plain DNS. */
export function hintFaults(pointer: string, texts: readonly string[]): readonly FieldFault[] {
  const faults = upstreamFaults(pointer, texts);
  const encrypted = texts.flatMap((text, index) => {
    const parsed = parseUpstream(text);
    if (parsed.kind === "fault" || parsed.upstream.transport === "dns") return [];
    return [{ pointer: `${pointer}/${index}`, detail: "must be a server of plain DNS, without tls://" }];
  });
  return [...faults, ...encrypted];
}

/** What the texts mean. One that is none, because another version wrote it, is left out. */
export function upstreamsOf(texts: readonly string[]): readonly Upstream[] {
  return texts.flatMap((text) => {
    const parsed = parseUpstream(text);
    return parsed.kind === "upstream" ? [parsed.upstream] : [];
  });
}

/** Whether a socket of that address (4 or 16 bytes) and port is one of this node's own. */
export type IsOwnSocket = (address: Uint8Array, port: number) => boolean;

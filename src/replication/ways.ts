/** The ways to one peer: what arrives on them and where it goes. Whoever says what cannot be is hung up on. */
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../cluster/transport.ts";
import type { AuditVector } from "../store/replica.ts";
import { createCalls } from "./calls.ts";
import type { Channel, ChannelHandlers } from "./channel.ts";
import type { Inbox } from "./inbox.ts";
import { BATCHES_IN_FLIGHT, CALLS_SERVED_MAX, UNTAKEN_BYTES_MAX, WAYS_MAX } from "./limits.ts";
import { decodeMessage, encodeMessage, type Message, type Question } from "./messages.ts";
import { type Peer, preferredWay, type Way } from "./peer.ts";
import { faultText } from "./serving.ts";
import { MalformedError } from "./shapes.ts";

export type WayParts = {
  readonly inbox: Inbox;
  readonly timers: Timers;
  readonly log: Log;
  readonly answer: (nodeId: string, question: Question) => AsyncGenerator<unknown>;
  readonly onAuditNotice: (peer: Peer, vector: AuditVector) => void;
  /** A way has opened, or closed, or has room, or something was acknowledged. */
  readonly onOpen: (peer: Peer, way: Way) => void;
  readonly onClosed: (peer: Peer) => void;
  readonly onRoom: (peer: Peer) => void;
  readonly count: (
    what: "itemsReceived" | "itemsRefusedHere" | "itemsRefusedThere" | "malformedMessages",
    by: number,
  ) => void;
};

/** A batch is refused only where the peer sends on without an acknowledgement. */
const UNAPPLIED_MAX = 2 * BATCHES_IN_FLIGHT;

export function openWay(parts: WayParts, peer: Peer, channel: Channel, isDialed: boolean): ChannelHandlers {
  const sendMessage = (message: Message) => channel.send(encodeMessage(message));
  const way: Way = {
    channel,
    isDialed,
    calls: createCalls({ timers: parts.timers, send: sendMessage }),
    isOpen: true,
    sentNumber: 0,
    receivedNumber: 0,
    unapplied: 0,
    serving: 0,
    onClosed: new Set(),
    onDrained: new Set(),
  };
  peer.ways.push(way);
  if (peer.ways.length > WAYS_MAX) peer.ways[0]?.channel.close("replaced by newer connections");
  useWay(peer);
  parts.onOpen(peer, way);
  return {
    onMessage: (bytes) => {
      try {
        receive(parts, peer, way, bytes);
      } catch (thrown) {
        if (!(thrown instanceof MalformedError)) throw thrown;
        hangUp(parts, peer, way, thrown.message);
      }
    },
    onDrain: () => {
      for (const drained of [...way.onDrained]) drained();
      parts.onRoom(peer);
    },
    onClose: (reason) => closeWay(parts, peer, way, reason),
  };
}

/** Changes go on the preferred way; those that were on another are sent again. */
function useWay(peer: Peer): void {
  const way = preferredWay(peer);
  if (way === peer.sending) return;
  peer.sending = way;
  peer.outbox.giveBack();
}

function closeWay(parts: WayParts, peer: Peer, way: Way, reason: string): void {
  if (!way.isOpen) return;
  way.isOpen = false;
  const at = peer.ways.indexOf(way);
  if (at >= 0) peer.ways.splice(at, 1);
  useWay(peer);
  way.calls.close(`the connection has ended: ${reason}`);
  for (const closed of [...way.onClosed]) closed();
  for (const drained of [...way.onDrained]) drained();
  parts.onClosed(peer);
}

/** Closes it, and whoever waits for something on it hears at once, however long the closing takes. */
export function endWay(way: Way, reason: string): void {
  way.calls.close(reason);
  for (const closed of [...way.onClosed]) closed();
  for (const drained of [...way.onDrained]) drained();
  way.channel.close(reason);
}

function hangUp({ log, count }: WayParts, peer: Peer, way: Way, reason: string): void {
  count("malformedMessages", 1);
  log("warn", "a peer sent what is no message of the replication", { peer: peer.nodeId, detail: reason });
  way.channel.close(reason);
}

function receive(parts: WayParts, peer: Peer, way: Way, bytes: Uint8Array): void {
  if (!way.isOpen) return;
  const message = decodeMessage(bytes);
  switch (message.type) {
    case "malformed":
      throw new MalformedError(message.reason);
    case "changes":
      receiveChanges(parts, peer, way, { ...message, bytes: bytes.length });
      break;
    case "acknowledgement": {
      const { through, refused } = message;
      if (through > way.sentNumber) throw new MalformedError("acknowledges what was not sent");
      if (way !== peer.sending) break;
      peer.outbox.acknowledge(through, refused);
      if (refused.length > 0) noteRefusals(parts, peer, refused[0]?.[1] ?? "", refused.length);
      parts.onRoom(peer);
      break;
    }
    case "question":
      serve(parts, peer, way, message).catch((thrown) => {
        parts.log("error", "a question of a peer ended badly", { peer: peer.nodeId, detail: errorText(thrown) });
      });
      break;
    case "answer":
      way.calls.onAnswer(message, bytes.length);
      break;
    case "audit-notice":
      parts.onAuditNotice(peer, message.vector);
      break;
  }
}

function noteRefusals({ log, count }: WayParts, peer: Peer, reason: string, refused: number): void {
  count("itemsRefusedThere", refused);
  log("warn", "a peer refused changes of this node", { peer: peer.nodeId, changes: refused, reason });
}

function receiveChanges(
  parts: WayParts,
  peer: Peer,
  way: Way,
  { first, items, bytes }: Extract<Message, { type: "changes" }> & { readonly bytes: number },
): void {
  if (first !== way.receivedNumber + 1 || items.length === 0) throw new MalformedError("changes out of sequence");
  if (way.unapplied >= UNAPPLIED_MAX) throw new MalformedError("more changes than were acknowledged");
  way.receivedNumber += items.length;
  way.unapplied++;
  const through = way.receivedNumber;
  parts.count("itemsReceived", items.length);
  parts.inbox.offer({
    items,
    bytes,
    from: peer,
    source: way,
    onApplied: (refused) => {
      way.unapplied--;
      parts.count("itemsRefusedHere", refused.length);
      if (refused.length > 0) {
        const reason = refused[0]?.reason;
        parts.log("warn", "changes of a peer are refused", { peer: peer.nodeId, changes: refused.length, reason });
      }
      if (!way.isOpen) return;
      const told = refused.map(({ index, reason }) => [first + index, reason] as const);
      way.channel.send(encodeMessage({ type: "acknowledgement", through, refused: told }));
    },
    onFailed: (thrown) => {
      way.unapplied--;
      parts.log("error", "changes of a peer could not be stored", { peer: peer.nodeId, detail: errorText(thrown) });
      way.channel.close("changes could not be stored");
    },
  });
}

/** Sends the parts of the answer as the peer takes them. */
async function serve(parts: WayParts, peer: Peer, way: Way, question: Question): Promise<void> {
  const { id } = question;
  const send = (body: unknown, isLast: boolean, fault?: string) => {
    if (way.isOpen) way.channel.send(encodeMessage({ type: "answer", id, isLast, body, fault }));
  };
  if (way.serving >= CALLS_SERVED_MAX) return send(undefined, true, "too many questions at once");
  way.serving++;
  try {
    for await (const part of parts.answer(peer.nodeId, question)) {
      if (!way.isOpen) return;
      send(part, false);
      await roomOn(way);
      await turnOf(parts.timers, question);
    }
    send(undefined, true);
  } catch (thrown) {
    send(undefined, true, faultText(thrown));
  } finally {
    way.serving--;
  }
}

/** Resolves when the network has taken enough, or the way is closed. */
function roomOn(way: Way): Promise<void> | undefined {
  if (!way.isOpen || way.channel.untakenBytes() < UNTAKEN_BYTES_MAX) return undefined;
  return new Promise((resolve) => {
    const drained = () => {
      way.onDrained.delete(drained);
      resolve();
    };
    way.onDrained.add(drained);
  });
}

/** Others have the thread between the parts of a long answer. */
function turnOf(timers: Timers, { ask }: Question): Promise<void> | undefined {
  if (ask !== "versions" && ask !== "items") return undefined;
  return new Promise((resolve) => {
    timers.after(0, resolve);
  });
}

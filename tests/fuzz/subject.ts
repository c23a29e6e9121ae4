import { readFileSync } from "node:fs";
import { type Answerer, createAnswerer } from "../../src/answer/answerer.ts";
import { TRANSPORT } from "../../src/image/counters.ts";
import { createSharedImage } from "../../src/image/shared.ts";
import { openImageWriter } from "../../src/image/writer.ts";
import { publishZoneFile } from "../../src/publish/zone-file-source.ts";
import { publishOverrides } from "../support/override-text.ts";
import type { ZoneSource } from "../support/server.ts";
import type { Transport } from "./oracle.ts";

/** The answerer of one thread in this process, over an image of some zones. */
export type Subject = {
  /**
   * Answers `packet` and gives the response, or undefined for silence. The response lies in a buffer that the next call
   * overwrites. Throws when the answerer throws, or writes outside the room it was given.
   */
  readonly answer: (packet: Uint8Array, transport: Transport) => Buffer | undefined;
};

/** Room for a response, as the listeners give it: a slot of the batch, or all of a TCP message. */
const ROOM = { udp: 4096, tcp: 65_535 } as const;
/** The answer begins at an odd place, between bytes that must stay as they are. */
const OFFSET = 37;
const CANARY = 0xa5;
const CANARIES = 64;
const HASH_SEED = 0x5eed;

/** An answerer over an image that holds the zones. Throws when one of them has a fault. */
export function createLoadedAnswerer(zones: readonly ZoneSource[], overrides = ""): Answerer {
  const shared = createSharedImage(HASH_SEED);
  const writer = openImageWriter(shared);
  for (const { file } of zones) {
    const { errors } = publishZoneFile(writer, readFileSync(file), undefined);
    if (errors.length > 0) throw new Error(`${file}: ${JSON.stringify(errors)}`);
  }
  if (overrides !== "") publishOverrides(writer, overrides);
  return createAnswerer(shared, { thread: 0, nodeId: "tests", maxUdpSize: 1232, tcpIdleSeconds: 10 });
}

/** Makes a subject of an image of its own; `overrides` as `publishOverrides` has them. Throws when a zone has a fault. */
export function createSubject(zones: readonly ZoneSource[], overrides = ""): Subject {
  const answerer = createLoadedAnswerer(zones, overrides);
  const bytes = Buffer.alloc(OFFSET + ROOM.tcp + CANARIES);
  const address = Uint8Array.of(127, 0, 0, 1);
  return {
    answer: (packet, transport) => {
      const room = ROOM[transport];
      const end = OFFSET + room;
      bytes.fill(CANARY, 0, OFFSET);
      bytes.fill(CANARY, end, end + CANARIES);
      bytes.set(packet, OFFSET);
      answerer.enter();
      answerer.readAhead(bytes, OFFSET, packet.length);
      answerer.prefetch();
      const length = answerer.answer(
        bytes,
        OFFSET,
        packet.length,
        room,
        address,
        0,
        address.length,
        transport === "udp" ? TRANSPORT.UDP : TRANSPORT.TCP,
      );
      answerer.leave();
      for (let index = 0; index < CANARIES; index += 1) {
        const touched = bytes[end + index] !== CANARY || (index < OFFSET && bytes[index] !== CANARY);
        if (touched) throw new Error("wrote outside its room");
      }
      if (length < 0 || length > room) throw new Error(`a response of ${length} bytes in a room of ${room}`);
      return length === 0 ? undefined : bytes.subarray(OFFSET, OFFSET + length);
    },
  };
}

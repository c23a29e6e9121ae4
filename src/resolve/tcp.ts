/** Connections to upstreams over plain TCP (RFC 7766): one question at a time in each, as every server takes them. */
import { connect } from "node:net";
import { ipToText } from "../base/ip.ts";
import type { Chance } from "./chance.ts";
import { TCP_CONNECTIONS_MAX, TCP_IDLE_MS } from "./limits.ts";
import { createStreams, type Streams } from "./stream.ts";
import type { Timers } from "./timers.ts";

export function createTcpStreams(timers: Timers, chance: Chance): Streams {
  return createStreams({
    connect: ({ address, port }, onReady) => {
      const socket = connect({ host: ipToText(address), port, noDelay: true });
      socket.once("connect", onReady);
      return socket;
    },
    faultOf: () => "network",
    connectionsMax: TCP_CONNECTIONS_MAX,
    pipelineMax: 1,
    idleMs: TCP_IDLE_MS,
    timers,
    chance,
  });
}

/**
 * Connections to upstreams over TLS (RFC 7858), whose certificate must be valid for the name that the settings have, or
 * for the address. Nothing is sent before it is, and nothing ever goes out in plain text instead.
 */

import { errorCode } from "../base/errors.ts";
import { ipToText } from "../base/ip.ts";
import type { Chance } from "./chance.ts";
import type { ExchangeFault } from "./exchange.ts";
import { TLS_CONNECTIONS_MAX, TLS_IDLE_MS, TLS_PIPELINE_MAX } from "./limits.ts";
import { createStreams, type Streams } from "./stream.ts";
import type { Timers } from "./timers.ts";

type Tls = typeof import("node:tls");
type SecureContext = ReturnType<Tls["createSecureContext"]>;

/** Errors of the way to the server; any other one before the connection is ready is TLS's. */
const NETWORK_CODES = /^(ECONN|EHOST|ENET|ETIMEDOUT|EPIPE|EADDR|EACCES|EINVAL|EMFILE)/;

/** `authorities` are certificates in PEM that are trusted beside those of the system and of Node. */
export function createTlsStreams(timers: Timers, chance: Chance, authorities: string | undefined): Streams {
  let context: { readonly tls: Tls; readonly secure: SecureContext } | undefined;
  return createStreams({
    connect: ({ address, port, tlsName }, onReady) => {
      // Most nodes have no such upstream: what TLS takes to load is paid by those that do.
      context ??= openContext(authorities);
      const host = ipToText(address);
      const socket = context.tls.connect({
        host,
        port,
        secureContext: context.secure,
        rejectUnauthorized: true,
        ...(tlsName === undefined ? {} : { servername: tlsName }),
      });
      socket.setNoDelay(true);
      socket.once("secureConnect", onReady);
      return socket;
    },
    faultOf: tlsFault,
    connectionsMax: TLS_CONNECTIONS_MAX,
    pipelineMax: TLS_PIPELINE_MAX,
    idleMs: TLS_IDLE_MS,
    timers,
    chance,
  });
}

function openContext(authorities: string | undefined): { readonly tls: Tls; readonly secure: SecureContext } {
  const tls = process.getBuiltinModule("node:tls");
  const trusted = [...new Set([...tls.getCACertificates("default"), ...tls.getCACertificates("system")])];
  const ca = authorities === undefined ? trusted : [...trusted, authorities];
  return { tls, secure: tls.createSecureContext({ ca, minVersion: "TLSv1.2" }) };
}

function tlsFault(error: Error | undefined): ExchangeFault {
  const code = errorCode(error);
  return code !== undefined && NETWORK_CODES.test(code) ? "network" : "tls";
}

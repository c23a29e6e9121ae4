/**
 * Streams between nodes over TLS 1.3 with an external pre-shared key (RFC 8446 section 2.2, with (EC)DHE): who has the cluster's
 * key is a node, and there are no certificates. That a key opens a stream says nothing of which node it is: identity.ts does.
 */
import { constants, hkdfSync } from "node:crypto";
import type { Socket } from "node:net";
import { connect, createSecureContext, TLSSocket, type TLSSocketOptions } from "node:tls";
import { errorCode, errorText } from "../base/errors.ts";

const KEY_BYTES = 32;
/** A hello names the key that it means; there is one. */
const PSK_IDENTITY = "signpost replication 1";
const EXPORTER_LABEL = "EXPORTER-signpost-replication";

const VERSION_AND_CIPHER = {
  minVersion: "TLSv1.3",
  maxVersion: "TLSv1.3",
  // The hash of an external key's binder is SHA-256, so that is the hash of its suites.
  ciphers: "TLS_AES_128_GCM_SHA256",
} as const;

/** Why a handshake came to nothing: the other key, something else of TLS, or the network. */
export type HandshakeFault = { readonly kind: "key" | "tls" | "network"; readonly detail: string };

export type HandshakeHandlers = {
  /** The peer has the key. Nothing has been read of what it sends. */
  readonly onSecure: (socket: TLSSocket) => void;
  /** Called instead, once. The socket is destroyed. */
  readonly onFault: (fault: HandshakeFault) => void;
  /** Called once in any case, when there is nothing left of the connection. */
  readonly onGone: () => void;
};

/** What began; ends it where its time has passed. */
export type Handshake = { readonly abandon: () => void };

export type StreamTls = {
  readonly dial: (to: { readonly host: string; readonly port: number }, handlers: HandshakeHandlers) => Handshake;
  /** A connection that somebody else opened, from its first byte on (what was looked at is pushed back with `unshift`). */
  readonly accept: (socket: Socket, handlers: HandshakeHandlers) => Handshake;
};

/** A key of its own for each purpose, from the 32 bytes that nodes of one cluster have in common (RFC 5869). */
export function replicationKey(root: Uint8Array, purpose: "stream" | "identity"): Uint8Array {
  if (root.length !== KEY_BYTES) throw new RangeError(`a key of ${KEY_BYTES} bytes is needed`);
  return new Uint8Array(hkdfSync("sha256", root, "signpost replication", purpose, KEY_BYTES));
}

/** What only the two ends of this very connection know (RFC 8446 section 7.5): 32 bytes. */
export function exportedSecret(socket: TLSSocket): Uint8Array {
  return socket.exportKeyingMaterial(KEY_BYTES, EXPORTER_LABEL, Buffer.alloc(0));
}

export function createStreamTls(root: Uint8Array): StreamTls {
  const psk = replicationKey(root, "stream");
  const clientContext = createSecureContext(VERSION_AND_CIPHER);
  const serverContext = createSecureContext({
    ...VERSION_AND_CIPHER,
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
  const serverOptions: TLSSocketOptions & { pskCallback: (socket: TLSSocket, identity: string) => Uint8Array | null } =
    {
      isServer: true,
      secureContext: serverContext,
      // Without the key there is nothing to go on with: no certificate is there to be shown instead.
      pskCallback: (_, identity) => (identity === PSK_IDENTITY ? psk : null),
    };
  return {
    dial: ({ host, port }, handlers) => {
      const socket = connect({
        host,
        port,
        secureContext: clientContext,
        pskCallback: () => ({ psk, identity: PSK_IDENTITY }),
        // Asked only where the other side shows a certificate in place of the key, however valid that is.
        checkServerIdentity: () => new Error("it has a certificate and not the key"),
      });
      socket.setNoDelay(true);
      return watch(socket, "secureConnect", handlers);
    },
    accept: (raw, handlers) => {
      raw.setNoDelay(true);
      // What breaks it ends the socket above it, which tells.
      raw.on("error", () => {});
      return watch(new TLSSocket(raw, serverOptions), "secure", handlers);
    },
  };
}

function watch(
  socket: TLSSocket,
  secured: "secure" | "secureConnect",
  { onSecure, onFault, onGone }: HandshakeHandlers,
): Handshake {
  let isOver = false;
  const fail = (fault: HandshakeFault) => {
    socket.destroy();
    if (isOver) return;
    isOver = true;
    onFault(fault);
  };
  socket.on("error", (error) => fail(faultOf(error)));
  socket.once("close", () => {
    fail({ kind: "network", detail: "the connection ended within the handshake" });
    onGone();
  });
  socket.once(secured, () => {
    // A pre-shared key counts as a session that is taken up again; without one no stream may be opened.
    if (!socket.isSessionReused()) return fail({ kind: "tls", detail: "no pre-shared key was agreed on" });
    if (isOver) return;
    isOver = true;
    onSecure(socket);
  });
  return {
    abandon: () => {
      isOver = true;
      socket.destroy();
    },
  };
}

/** What OpenSSL says where the keys are not the same: the end that sees it first, and the one that is told. */
const OTHER_KEY = new Set(["ERR_SSL_BINDER_DOES_NOT_VERIFY", "ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR"]);

function faultOf(error: Error): HandshakeFault {
  const code = errorCode(error) ?? "";
  if (OTHER_KEY.has(code)) return { kind: "key", detail: code };
  // OpenSSL's own text has the places in its source, and nothing that its code does not say.
  if (code.startsWith("ERR_SSL_")) return { kind: "tls", detail: code };
  return {
    kind: code.startsWith("E") && !code.startsWith("ERR_") ? "network" : "tls",
    detail: code || errorText(error),
  };
}

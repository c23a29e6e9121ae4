/** A server that queries are forwarded to, and its text as settings have it. */

export type Upstream = {
  /** Over UDP with TCP behind it, or over TLS (RFC 7858). */
  readonly transport: "dns" | "tls";
  /** An address, or a host name without its last dot. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly port: number;
  /** The name that the certificate must have; undefined: `host`, name or address. Of transport "tls" only. */
  readonly tlsName: string | undefined;
};

export const UPSTREAM_PORT = { dns: 53, tls: 853 } as const;

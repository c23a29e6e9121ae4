/** Nodes of the cluster: what a client gets to see of them, and the addresses that it may have dialled. */
import { type Static, Type } from "typebox";
import { parseEndpoint } from "./endpoint.ts";
import { ENDPOINT_MAX, ID_MAX, JOIN_ADDRESSES_MAX } from "./limits.ts";
import type { FieldFault } from "./refusal.ts";

export const NODE_STATES = ["alive", "suspect", "dead", "left"] as const;

const orNone = <Schema extends Type.TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description });
const Time = Type.String({ format: "date-time" });
const Count = Type.Integer({ minimum: 0 });
const NodeId = Type.String({ maxLength: ID_MAX, examples: ["node-1"] });

const NODE_FIELDS = {
  id: NodeId,
  status: Type.Enum([...NODE_STATES], { description: "as the node that is asked sees it" }),
  self: Type.Boolean({ description: "whether it is the node that is asked" }),
  region: Type.String(),
  address: Type.String({ description: "host:port that peers dial", examples: ["192.0.2.1:7946"] }),
  version: Type.String({ examples: ["0.1.0"] }),
  since: orNone(Time, "since when it has that status"),
  queued_changes: orNone(Count, "changes made here that it has not acknowledged"),
  lag_ms: orNone(Count, "age of the oldest of them"),
  skew_ms: orNone(Type.Integer(), "its clock less that of the node that is asked"),
  last_agreement: orNone(Time, "when both last held the same"),
};
export const NodeView = Type.Object(NODE_FIELDS);
export type NodeView = Static<typeof NodeView>;

const Sockets = Type.String({ examples: ["192.0.2.1:8443"] });
export const NodeListeners = Type.Object(
  {
    dns: Type.Array(Type.String({ examples: ["192.0.2.1:53"] })),
    api: Sockets,
    management: Sockets,
    replication: orNone(Sockets, "null on a node without replication.encrypt_key"),
  },
  { description: "where the node listens, with the ports in use" },
);
export type NodeListeners = Static<typeof NodeListeners>;

export const NodeSelfView = Type.Object({
  ...NODE_FIELDS,
  instance_id: Type.String({
    description: "of its store: another one after a restore",
    examples: ["0f1e2d3c4b5a69788796"],
  }),
  clustered: Type.Boolean({ description: "whether it has a cluster key" }),
  peers_alive: Count,
  listeners: NodeListeners,
});
export type NodeSelfView = Static<typeof NodeSelfView>;

export const ClusterJoin = Type.Object(
  {
    join: Type.Array(Type.String({ maxLength: ENDPOINT_MAX }), {
      minItems: 1,
      maxItems: JOIN_ADDRESSES_MAX,
      description: "host:port of members, as peers dial them",
    }),
    merge: Type.Optional(
      Type.Boolean({ description: "needed where this node holds data: it is put together with the cluster's" }),
    ),
  },
  { additionalProperties: false, examples: [{ join: ["192.0.2.1:7946"] }] },
);
export type ClusterJoin = Static<typeof ClusterJoin>;

const Failure = Type.Object({ address: Type.String({ examples: ["192.0.2.2:7946"] }), detail: Type.String() });
export const ClusterJoinView = Type.Object({
  joined: Type.Integer({ minimum: 0, description: "addresses that answered" }),
  failures: Type.Array(Failure),
});

/** What is wrong with the addresses: each is a host and a port. */
export function joinFaults(addresses: readonly string[]): readonly FieldFault[] {
  return addresses.flatMap((text, index) => {
    const port = parseEndpoint(text)?.port;
    if (port !== undefined && port !== 0) return [];
    const detail = "must be a host and a port, such as 192.0.2.1:7946 or [2001:db8::1]:7946";
    return [{ pointer: `/join/${index}`, detail }];
  });
}

const Digest = orNone(Type.String({ examples: ["9c1185a5c5e9fc54"] }), "null where it is not known");
const ZoneStandingView = Type.Object({
  id: NodeId,
  serial: orNone(Count, "null where the node has no such zone, or did not answer"),
  digest: Digest,
  records: orNone(Count, "null like the serial"),
});
const NodeStandingView = Type.Object({
  id: NodeId,
  status: Type.Enum([...NODE_STATES]),
  answered: Type.Boolean(),
  digest: Digest,
  agrees: Type.Boolean({
    description: "whether it holds all that the node holds that is asked, and no more, but for changes under way",
  }),
  lag_ms: NODE_FIELDS.lag_ms,
  skew_ms: NODE_FIELDS.skew_ms,
});
export const ConsistencyView = Type.Object({
  agrees: Type.Boolean({ description: "whether all nodes that are alive or suspect hold the same" }),
  nodes: Type.Array(NodeStandingView),
  items: Type.Array(
    Type.Object({
      zone: Type.String({ examples: ["corp.example."] }),
      agrees: Type.Boolean({
        description: "whether all nodes that answered have the same serial and records, or the zone is being changed",
      }),
      nodes: Type.Array(ZoneStandingView),
    }),
  ),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
});
export type ConsistencyView = Static<typeof ConsistencyView>;

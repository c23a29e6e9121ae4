/** How the way to an answer is told: what was asked, the reasons in their order, and the answer. */
import { type Static, Type } from "typebox";
import { HealthStateShape } from "./health-status.ts";
import { ID_MAX } from "./limits.ts";
import { LB_METHODS, RECORD_TYPES } from "./objects.ts";

/** What can be asked for: the types that records have but ALIAS, which no answer shows, and a few that clients often ask for. */
export const EXPLAINED_TYPES = [
  ...RECORD_TYPES.filter((type) => type !== "ALIAS"),
  "SOA",
  "DS",
  "HTTPS",
  "SVCB",
  "ANY",
] as const;

const Name = Type.String({ examples: ["www.corp.example."] });
const Text = Type.String({ description: "The reason, for a person." });
const Time = Type.String({ format: "date-time" });
const Id = Type.String({ maxLength: ID_MAX });
const RecordId = Type.Optional(
  Type.String({ maxLength: ID_MAX, description: "Absent for what is made by itself, as the NS of an apex." }),
);
const RrType = Type.String({ examples: ["A"] });

const RouteShape = Type.Object({
  kind: Type.Literal("route"),
  text: Text,
  name: Name,
  by: Type.Enum([
    "override",
    "zone",
    "blocklist",
    "forwarder",
    "stub_zone",
    "default_forwarder",
    "delegation",
    "nobody",
  ]),
  zone: Type.Optional(Type.String({ examples: ["corp.example."] })),
  zone_id: Type.Optional(Id),
  pending_zone: Type.Optional(
    Type.String({
      description: "A longer zone that the name lies in: it is pending, and no query is answered from it yet.",
      examples: ["new.corp.example."],
    }),
  ),
  pending_zone_id: Type.Optional(Id),
  domain: Type.Optional(
    Type.String({
      description: "The domain of the forwarder or stub zone, the listed name, or the name that is delegated.",
      examples: ["partner.example."],
    }),
  ),
  forwarder_id: Type.Optional(Id),
  stub_zone_id: Type.Optional(Id),
});

const CacheShape = Type.Object({
  kind: Type.Literal("cache"),
  text: Text,
  name: Name,
  found: Type.Enum(["fresh", "stale"]),
  age_seconds: Type.Integer({ minimum: 0, description: "How long ago an upstream said so." }),
});

const UpstreamShape = Type.Object({ kind: Type.Literal("upstream"), text: Text, name: Name, type: RrType });

const LookupShape = Type.Object({
  kind: Type.Literal("lookup"),
  text: Text,
  name: Name,
  found: Type.Enum(["name", "wildcard", "delegation", "nothing"]),
  owner: Type.String({ description: "The name that has the records.", examples: ["www.corp.example."] }),
});

const RecordsShape = Type.Object({
  kind: Type.Literal("records"),
  text: Text,
  section: Type.Enum(["answer", "additional"]),
  name: Name,
  type: RrType,
  ttl: Type.Integer({ minimum: 0 }),
  record_id: RecordId,
});

const NoDataShape = Type.Object({ kind: Type.Literal("no_data"), text: Text, name: Name, type: RrType });

const FollowShape = Type.Object({
  kind: Type.Literal("follow"),
  text: Text,
  by: Type.Enum(["CNAME", "ALIAS"]),
  target: Type.String({ examples: ["pool.corp.example."] }),
});

const EndShape = Type.Object({
  kind: Type.Literal("end"),
  text: Text,
  why: Type.Enum(["loop", "too_long"], { description: "Why a chain of names is followed no further." }),
});

const ChangeShape = Type.Object({ kind: Type.Literal("change"), text: Text });

/** Why a value is not in the answer. */
export const DROPPED_BY = [
  "unhealthy",
  "other_region",
  "later_in_order",
  "slower",
  "weight_zero",
  "chance",
  "affinity",
  "other_turn",
] as const;

const CandidateShape = Type.Object({
  value: Type.String({ examples: ["192.0.2.1"] }),
  probed: Type.Boolean({ description: "False: nothing probes it, so it is never unhealthy." }),
  state: HealthStateShape,
  since: Type.Optional(Time),
  latency_ms: Type.Optional(Type.Number({ minimum: 0 })),
  region: Type.Optional(Type.String({ examples: ["eu-west"] })),
  weight_percent: Type.Optional(Type.Number({ minimum: 0, maximum: 100, description: "Of the method weighted." })),
  answered: Type.Boolean(),
  position: Type.Optional(Type.Integer({ minimum: 1, description: "Its place in the answer." })),
  dropped_by: Type.Optional(Type.Enum([...DROPPED_BY])),
  share: Type.Number({
    minimum: 0,
    maximum: 1,
    description: "The part of the answers to this client that have the value, as things stand.",
  }),
});

const ClientRegionShape = Type.Object({
  region: Type.Optional(Type.String({ examples: ["eu-west"] })),
  source: Type.Enum(["mapping", "node", "none"], {
    description: "A subnet mapping; the region of this node, since no mapping covers the client; neither.",
  }),
  subnet: Type.Optional(Type.String({ examples: ["192.0.2.0/24"] })),
  mapping_id: Type.Optional(Id),
});

const AffinityShape = Type.Object({
  network: Type.String({ description: "What counts as one client.", examples: ["192.0.2.0/24"] }),
  period: Type.Integer({ description: "The number of the period that the value was drawn for." }),
  period_seconds: Type.Integer({ minimum: 1 }),
  redrawn_at: Time,
});

const SelectionShape = Type.Object({
  kind: Type.Literal("selection"),
  text: Text,
  name: Name,
  type: RrType,
  record_id: RecordId,
  method: Type.Enum(["all", ...LB_METHODS], { description: "all: there is no policy." }),
  policy: Type.Enum(["record", "zone", "none"], { description: "Whose policy it is; an override is a record here." }),
  failing_open: Type.Boolean({ description: "All values are unhealthy, so all are taken as if they were healthy." }),
  client: Type.Optional(ClientRegionShape),
  affinity: Type.Optional(AffinityShape),
  reasons: Type.Array(Type.String(), { description: "The steps of the choice, in their order." }),
  candidates: Type.Array(CandidateShape),
});

export const ReasonShape = Type.Union([
  RouteShape,
  CacheShape,
  UpstreamShape,
  LookupShape,
  RecordsShape,
  SelectionShape,
  FollowShape,
  NoDataShape,
  EndShape,
  ChangeShape,
]);

const Lines = Type.Array(Type.String({ examples: ["www.corp.example. 300 IN A 192.0.2.1"] }));

export const ExplanationShape = Type.Object({
  node_id: Type.String({ description: "The node that answers: health is each node's own." }),
  at: Time,
  question: Type.Object({ name: Name, type: RrType, client: Type.String({ examples: ["192.0.2.77"] }) }),
  reasons: Type.Array(ReasonShape),
  answer: Type.Object({
    rcode: Type.String({ examples: ["NOERROR"] }),
    flags: Type.Array(Type.String({ examples: ["aa"] })),
    extended_error: Type.Optional(Type.Integer({ description: "Code of RFC 8914." })),
    needs_upstream: Type.Boolean({
      description: "An upstream would be asked for the rest: this is what is answered where none answers.",
    }),
    needs_tcp: Type.Boolean({ description: "Over UDP the answer is cut short; this is what TCP has." }),
    answer: Lines,
    authority: Lines,
    additional: Lines,
  }),
});

export type Explanation = Static<typeof ExplanationShape>;
export type Reason = Static<typeof ReasonShape>;
export type SelectionReason = Static<typeof SelectionShape>;
export type ExplainedCandidate = Static<typeof CandidateShape>;
export type DroppedBy = (typeof DROPPED_BY)[number];

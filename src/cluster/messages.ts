/** The messages of the membership protocol (memberlist's, protocol 2 to 5), as values; wire.ts has their bytes. */

/** An address of a member: 4 or 16 bytes, and its port over UDP and TCP alike. */
export type Endpoint = { readonly address: Uint8Array; readonly port: number };

export const MEMBER_STATE = { ALIVE: 0, SUSPECT: 1, DEAD: 2, LEFT: 3 } as const;
export type MemberState = (typeof MEMBER_STATE)[keyof typeof MEMBER_STATE];

/** Protocol: least, greatest and current; then the same of whoever uses it (Vsn). */
export type Versions = readonly [number, number, number, number, number, number];

/** Where an answer is to go, since a packet may come from another port; undefined in messages of old members. */
export type Source = { readonly endpoint: Endpoint; readonly node: string };

export type PingMessage = {
  readonly type: "ping";
  readonly sequence: number;
  readonly node: string;
  readonly source: Source | undefined;
};
export type IndirectPingMessage = {
  readonly type: "indirect-ping";
  readonly sequence: number;
  readonly target: Endpoint;
  readonly node: string;
  /** Whether the asker wants to hear that the target did not answer. */
  readonly wantsNack: boolean;
  readonly source: Source | undefined;
};
export type AckMessage = { readonly type: "ack"; readonly sequence: number; readonly payload: Uint8Array };
export type NackMessage = { readonly type: "nack"; readonly sequence: number };
export type SuspectMessage = {
  readonly type: "suspect";
  readonly incarnation: number;
  readonly node: string;
  readonly from: string;
};
/** From the node itself it is a clean leave. */
export type DeadMessage = {
  readonly type: "dead";
  readonly incarnation: number;
  readonly node: string;
  readonly from: string;
};
export type AliveMessage = {
  readonly type: "alive";
  readonly incarnation: number;
  readonly node: string;
  readonly endpoint: Endpoint;
  /** At most 512 bytes, of whoever uses the protocol. */
  readonly meta: Uint8Array;
  readonly versions: Versions;
};
/** Bytes of whoever uses the protocol. */
export type UserMessage = { readonly type: "user"; readonly payload: Uint8Array };
export type NodeState = Omit<AliveMessage, "type"> & { readonly state: MemberState };
/** Over TCP only, in both directions. */
export type PushPullMessage = {
  readonly type: "push-pull";
  readonly isJoin: boolean;
  readonly nodes: readonly NodeState[];
  readonly userState: Uint8Array;
};
/** Over TCP: the peer cannot do what it was asked. */
export type ErrorMessage = { readonly type: "error"; readonly text: string };

/** What travels in packets, alone or several together. */
export type PacketMessage =
  | PingMessage
  | IndirectPingMessage
  | AckMessage
  | NackMessage
  | SuspectMessage
  | DeadMessage
  | AliveMessage
  | UserMessage;
/** What travels over TCP, one a direction. */
export type StreamMessage = PushPullMessage | PingMessage | AckMessage | UserMessage | ErrorMessage;

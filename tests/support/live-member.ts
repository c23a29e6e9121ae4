/** A member on real sockets and in real time, with what it was told. */
import { lookup } from "node:dns/promises";
import { ipFromText } from "../../src/base/ip.ts";
import { createCodec } from "../../src/cluster/codec.ts";
import type { Member, Membership } from "../../src/cluster/member.ts";
import { createMembership } from "../../src/cluster/membership.ts";
import { openClusterPort } from "../../src/cluster/sockets.ts";
import { systemTimers } from "../../src/cluster/system-timers.ts";

export type LiveMember = AsyncDisposable & {
  readonly membership: Membership;
  readonly port: number;
  /** "join NAME", "leave NAME left", "suspect NAME", "update NAME". */
  readonly events: readonly string[];
  readonly payloads: readonly Buffer[];
  readonly log: readonly string[];
  /** The state of a member as this one sees it. */
  readonly stateOf: (name: string) => Member["state"] | undefined;
  /** Ends without a leave, as if it were killed. */
  readonly kill: () => Promise<void>;
};

export async function startLiveMember(
  name: string,
  key: Uint8Array,
  host = "127.0.0.1",
  onEvent: (event: string) => void = () => undefined,
): Promise<LiveMember> {
  const events: string[] = [];
  const tell = (event: string): void => {
    events.push(event);
    onEvent(event);
  };
  const payloads: Buffer[] = [];
  const log: string[] = [];
  const port = await openClusterPort({ listen: { host, port: 0 }, onTls: (socket) => void socket.destroy() });
  const membership = createMembership({
    name,
    meta: new Uint8Array(0),
    advertise: port.local,
    codec: createCodec({ key }),
    transport: port,
    timers: systemTimers,
    random: Math.random,
    delegate: {
      onJoin: (member) => tell(`join ${member.name}`),
      onLeave: (member) => tell(`leave ${member.name} ${member.state}`),
      onSuspect: (member) => tell(`suspect ${member.name}`),
      onUpdate: (member) => tell(`update ${member.name}`),
      onUserMessage: (payload) => void payloads.push(Buffer.from(payload)),
      localState: () => new Uint8Array(0),
      mergeState: () => undefined,
      refusal: () => undefined,
    },
    log: (level, message) => void log.push(`${level} ${message}`),
    resolveHost: async (hostName) => {
      const addresses = await lookup(hostName, { all: true });
      return addresses.flatMap(({ address }) => ipFromText(address) ?? []);
    },
  });
  let isEnded = false;
  const kill = async (): Promise<void> => {
    if (isEnded) return;
    isEnded = true;
    await port[Symbol.asyncDispose]();
    await membership[Symbol.asyncDispose]();
  };
  return {
    membership,
    port: port.local.port,
    events,
    payloads,
    log,
    stateOf: (member) => membership.members().find((one) => one.name === member)?.state,
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

/** What upstreams are asked by, put together: sockets of this system, and names of hosts from our own zones first. */
import { ipFromText } from "../base/ip.ts";
import type { OpenUdpSockets } from "../base/udp-sockets.ts";
import { openLibc } from "../listen/linux/libc.ts";
import { openLinuxUdpSockets } from "../listen/linux/upstream-sockets.ts";
import { createChance } from "../resolve/chance.ts";
import { createExchanger } from "../resolve/exchanger.ts";
import { createServers } from "../resolve/servers.ts";
import { createTcpStreams } from "../resolve/tcp.ts";
import { createTimers } from "../resolve/timers.ts";
import { createTlsStreams } from "../resolve/tls.ts";
import { openPortableUdpSockets } from "../resolve/udp-portable.ts";
import { createHealthResolver } from "./health-resolver.ts";
import type { OpenExchanges } from "./resolve-thread.ts";

export const openExchanges: OpenExchanges = ({ shared, ownThread, caPem, descriptors }) => {
  const timers = createTimers();
  const chance = createChance();
  const libc = openLibc();
  const words = new Int32Array(descriptors);
  const openSockets: OpenUdpSockets =
    libc === undefined
      ? openPortableUdpSockets
      : (options) => openLinuxUdpSockets(libc, { ...options, descriptors: words });
  const tcp = createTcpStreams(timers, chance);
  const tls = createTlsStreams(timers, chance, caPem);
  const exchanger = createExchanger({
    openSockets,
    socketsMax: words.length - 1,
    tcp,
    tls,
    timers,
    chance,
  });
  const findHost = createHealthResolver(shared, ownThread);
  const resolveHost = async (host: string) => (await findHost(`${host}.`)).flatMap((text) => ipFromText(text) ?? []);
  const servers = createServers({ exchanger, timers, resolveHost });
  return {
    makePool: ({ upstreams }) => servers.openPool(upstreams),
    askServers: servers.askServers,
    isOurs: exchanger.isOurs,
    setListens: exchanger.setListens,
    after: timers.after,
    close: exchanger.close,
  };
};

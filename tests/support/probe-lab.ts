/** What tests of probes have in common: a prober with a policy, specs, and servers that behave as they are told. */
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import type { TestContext } from "node:test";
import type { ProbePolicy, ProbeSpec } from "../../src/health/probe.ts";
import { createProber, type Prober, type ProberOptions } from "../../src/health/prober.ts";

/** No answer that a test waits for takes as long, and no test waits as long for one that does not come. */
export const TIMEOUT_MS = 20_000;

export const STRICT: ProbePolicy = { allowInsecureAuthenticatedProbes: false, managedIdentityHosts: [] };

export function proberFor(t: TestContext, options: Partial<ProberOptions> = {}): Prober {
  const prober = createProber({
    resolveHost: () => Promise.resolve([]),
    // Nobody listens there.
    metadataUrl: "http://127.0.0.1:1",
    policy: () => STRICT,
    ...options,
  });
  t.after(prober.close);
  return prober;
}

export function httpSpec(port: number, options: Partial<ProbeSpec> = {}): ProbeSpec {
  return {
    key: "probe",
    slot: 0,
    protocol: "http",
    host: "127.0.0.1",
    port,
    intervalMs: 15_000,
    timeoutMs: TIMEOUT_MS,
    failureThreshold: 3,
    ...options,
  };
}

/** Listens until the test ends; gives the port. */
export async function listenFor(t: TestContext, server: Server, host = "127.0.0.1"): Promise<number> {
  const sockets = new Set<{ destroy: () => void }>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.listen(0, host);
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

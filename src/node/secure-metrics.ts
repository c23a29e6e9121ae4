/** Figures of DNS over TLS and over HTTPS, as the thread that serves them counts. */
import { Counter, Gauge, type Registry } from "prom-client";
import { COUNTER, sumCounter } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";
import { SECURE_KIND } from "../listen/secure-server.ts";
import { registerCounters } from "./counters.ts";

const KINDS = [
  ["dot", SECURE_KIND.DOT],
  ["doh", SECURE_KIND.DOH],
] as const;

/** Of each transport: name, help, first of its places. */
const GAUGES = [
  ["svc_transport_listening", "1 while the transport's address is bound.", COUNTER.SECURE_LISTENING],
  ["svc_transport_connections_open", "Open connections, those in their handshake among them.", COUNTER.SECURE_OPEN],
] as const;

const TOTALS = [
  ["svc_transport_connections_accepted_total", "Connections accepted.", COUNTER.SECURE_ACCEPTED],
  ["svc_transport_connections_refused_total", "Connections refused for too many.", COUNTER.SECURE_REFUSED],
  ["svc_transport_handshakes_failed_total", "TLS handshakes that failed or took too long.", COUNTER.HANDSHAKES_FAILED],
] as const;

const HTTPS_TOTALS = [
  ["svc_doh_refused_total", "Requests answered by an HTTP status other than 200.", COUNTER.HTTPS_REFUSED],
  ["svc_doh_connections_cut_total", "Connections ended for a limit or a broken rule.", COUNTER.HTTPS_CUT],
] as const;

const HTTP_VERSIONS = [
  ["2", COUNTER.HTTP2_REQUESTS],
  ["1.1", COUNTER.HTTP1_REQUESTS],
] as const;

export function registerSecure(shared: SharedImage, registry: Registry): void {
  const registers = [registry];
  for (const [name, help, place] of GAUGES) {
    new Gauge({
      ...{ name, help, registers, labelNames: ["transport"] },
      collect() {
        for (const [transport, kind] of KINDS) this.set({ transport }, sumCounter(shared, place + kind));
      },
    });
  }
  for (const [name, help, place] of TOTALS) {
    new Counter({
      ...{ name, help, registers, labelNames: ["transport"] },
      collect() {
        this.reset();
        for (const [transport, kind] of KINDS) this.inc({ transport }, sumCounter(shared, place + kind));
      },
    });
  }
  registerCounters(
    registry,
    HTTPS_TOTALS.map(([name, help, place]) => [name, help, () => sumCounter(shared, place)]),
  );
  new Counter({
    name: "svc_doh_requests_total",
    help: "Requests over HTTPS, by version of HTTP.",
    registers,
    labelNames: ["version"],
    collect() {
      this.reset();
      for (const [version, place] of HTTP_VERSIONS) this.inc({ version }, sumCounter(shared, place));
    },
  });
}

/** The control thread: the one writer of the image, and the management listener. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { MessagePort } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import type { Log, LogLine } from "../base/log.ts";
import type { SharedImage } from "../image/shared.ts";
import { collect, openImageWriter } from "../image/writer.ts";
import type { ImageWriter } from "../image/writer-state.ts";
import { type Address, hostText } from "../listen/address.ts";
import { bindFailure } from "../listen/sockets.ts";
import type { ZoneArgument } from "./arguments.ts";
import { SETTLE_PAUSE_MS } from "./limits.ts";
import { createManagementServer } from "./management.ts";
import { createMetrics } from "./metrics.ts";
import { type NodeStatus, setZonesServed } from "./status.ts";
import { createZoneFiles, type ServedZone, type ZoneFilesReport } from "./zone-files.ts";

/** `workerData` of the control thread. */
export type ControlData = {
  readonly shared: SharedImage;
  readonly status: NodeStatus;
  readonly zones: readonly ZoneArgument[];
  readonly management: Address;
  readonly version: string;
  /** The node starts: a fault ends it. A replacement serves what is free of faults instead. */
  readonly isFirst: boolean;
};

export type ControlMessage =
  | { readonly kind: "log"; readonly line: LogLine }
  | { readonly kind: "ready"; readonly management: Address; readonly served: readonly ServedZone[] }
  /** The node cannot start: `faults` are printed, then `summary`. */
  | { readonly kind: "refused"; readonly faults: readonly string[]; readonly summary: string };

export type ControlCommand = { readonly kind: "reload" } | { readonly kind: "stop" };

/** Listens, publishes the zones, says so, and serves until it is told to stop. */
export async function runControl(data: ControlData, port: MessagePort): Promise<void> {
  const say = (message: ControlMessage) => port.postMessage(message);
  const log: Log = (level, message, fields = {}) => say({ kind: "log", line: { level, message, fields } });
  const metrics = createMetrics(data.shared, data.status, data.version);
  const server = createManagementServer({ status: data.status, metrics });
  let management: Address;
  try {
    management = await listen(server, data.management);
  } catch (error) {
    if (!data.isFirst) throw error;
    return say({ kind: "refused", faults: [], summary: errorText(error) });
  }
  const writer = openImageWriter(data.shared);
  const load = createZoneFiles(writer, data.zones);
  const first = load();
  settleImage(writer);
  if (data.isFirst && first.refused.length > 0) {
    say({ kind: "refused", faults: first.faults, summary: first.refused.join("; ") });
    server.close();
    return;
  }
  reportZones(first, log);
  setZonesServed(data.status, first.refused.length === 0);
  say({ kind: "ready", management, served: first.served });

  const reload = () => {
    const report = load();
    settleImage(writer);
    reportZones(report, log);
    for (const zone of report.served) log("info", `serves zone ${zone.name}`, servedFields(zone));
    setZonesServed(data.status, report.served.length === data.zones.length);
  };
  let waiting: NodeJS.Immediate | undefined;
  port.on("message", (command: ControlCommand) => {
    if (command.kind === "reload") {
      // Those that arrive while one runs are one: it reads the files as they are by then.
      clearImmediate(waiting);
      waiting = setImmediate(reload);
    } else {
      clearImmediate(waiting);
      server.close();
      server.closeAllConnections();
      port.close();
    }
  });
}

/** Frees what replaced zones have left. A reader that is inside may hold some of it: then again a little later. */
function settleImage(writer: ImageWriter): void {
  if (collect(writer)) setTimeout(() => settleImage(writer), SETTLE_PAUSE_MS).unref();
}

export function servedFields({ records, serial, file }: ServedZone): { records: number; serial: number; file: string } {
  return { records, serial, file };
}

function reportZones(report: ZoneFilesReport, log: Log): void {
  for (const warning of report.warnings) log("warn", warning);
  for (const fault of report.faults) log("error", fault);
  for (const refused of report.refused) log("error", `${refused}; what was served before stays`);
}

/** The address with the port in use. Throws OperatorError. */
async function listen(server: Server, address: Address): Promise<Address> {
  try {
    server.listen({ host: hostText(address), port: address.port, ipv6Only: true });
    await once(server, "listening");
  } catch (error) {
    throw bindFailure("management", address, error);
  }
  const bound = server.address();
  return { bytes: address.bytes, port: bound !== null && typeof bound === "object" ? bound.port : address.port };
}

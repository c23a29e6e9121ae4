/** From arguments and environment to a running process: what it prints, how it takes signals, how it ends. */
import { readFileSync } from "node:fs";
import { errorText, OperatorError } from "../base/errors.ts";
import { type Log, openLog } from "../base/log.ts";
import { type Address, addressToText, hostText, isWildcard } from "../listen/address.ts";
import { type Command, commandFromArguments, helpText, type ZoneArgument } from "./arguments.ts";
import { type Config, loadConfig } from "./config.ts";
import { type RunningNode, startNode, THREAD_PLAN, type ThreadPlan } from "./node.ts";

const STDERR = 2;

/** Does what the arguments say. A fault that the operator can mend ends in one line on stderr and exit code 1. */
export async function runCommand(
  words: readonly string[],
  environment: NodeJS.ProcessEnv,
  plan = THREAD_PLAN,
): Promise<void> {
  try {
    const command = commandFromArguments(words);
    if (command.kind === "help") process.stdout.write(helpText());
    else if (command.kind === "version") process.stdout.write(`signpost ${packageVersion()}\n`);
    else await runConfigured(command, environment, plan);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    process.stderr.write([...error.details, `signpost: ${error.message}`, ""].join("\n"));
    process.exitCode = 1;
  }
}

type ConfiguredCommand = Extract<Command, { readonly config: string | undefined }>;

async function runConfigured(
  command: ConfiguredCommand,
  environment: NodeJS.ProcessEnv,
  plan: ThreadPlan,
): Promise<void> {
  const config = loadConfig(environment, command.config);
  switch (command.kind) {
    case "check":
      process.stdout.write("the configuration is valid\n");
      return;
    case "serve":
      return await serve(config, command.zones, environment, plan);
    case "reset-admin-password": {
      // Needs the store, which no other command needs in this thread: a tenth of a node's memory and of its start.
      const { readPassword, resetPassword } = await import("./break-glass.ts");
      const isGiven = command.password === "standard-input";
      const password = await resetPassword(config, isGiven ? await readPassword(process.stdin) : undefined);
      if (isGiven) process.stdout.write("the admin's password is set, and all sessions of the admin have ended\n");
      else printAdminPassword(password);
    }
  }
}

/** The one line that tells a password. It goes to standard output, past every log. */
function printAdminPassword(password: string): void {
  process.stdout.write(`admin password: ${password}\n`);
}

async function serve(
  config: Config,
  zones: readonly ZoneArgument[],
  environment: NodeJS.ProcessEnv,
  plan: ThreadPlan,
): Promise<void> {
  const isText = config["log.format"] === "text" || (config["log.format"] === "auto" && process.stderr.isTTY === true);
  const { log, flush } = openLog(STDERR, config["log.level"], isText ? "text" : "json");
  let node: RunningNode | undefined;
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    // Before the start is done there is nothing to drain; the second signal means now.
    if (node === undefined || signals > 1) process.exit(signals > 1 ? 1 : 0);
    log("info", `${signal}: stopping`);
    void end(node, log).then(async (exitCode) => {
      await flush();
      process.exit(exitCode);
    });
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  let hangUps = 0;
  process.on("SIGHUP", () => {
    hangUps += 1;
    node?.reload();
  });
  node = await startNode({
    config,
    zones,
    version: packageVersion(),
    log,
    environment,
    plan,
    onAdminPassword: printAdminPassword,
    onStuck: () => {
      log("error", "the control thread does not end and holds the store; the process ends, to be started again");
      void flush().then(() => process.exit(1));
    },
  });
  announce(node, config["replication.join"].length > 0, log);
  // The certificate's files may have changed after they were read for the start.
  if (hangUps > 0) node.reload();
}

/** Stops the node; the exit code. */
async function end(node: RunningNode, log: Log): Promise<number> {
  try {
    await node.stop();
    return 0;
  } catch (error) {
    log("error", `stopping failed: ${errorText(error)}`);
    return 1;
  }
}

/** What listens where, what is served, and how to try it. `joins`: it is told whom to ask for what there is. */
function announce(node: RunningNode, joins: boolean, log: Log): void {
  for (const { address } of node.listeners) log("info", `DNS on ${addressToText(address)}, UDP and TCP`);
  log("info", `health and metrics on http://${addressToText(node.management)}`);
  log("info", `API and its documentation on https://${addressToText(reachable(node.api))}`);
  const { count, first } = node.served;
  for (const { name, records, serial } of first) log("info", `serves zone ${name}`, { records, serial });
  if (count > first.length) log("info", `serves ${count - first.length} more zones`);
  if (count === 0 && joins) log("info", "no zone is served yet; those of the cluster come from its members");
  else if (count === 0)
    log("warn", "no zone is served; create one through the API, or import a zone file with --zone FILE");
  if (node.udp === "dgram" && node.listeners.some(({ address }) => isWildcard(address.bytes))) {
    log("warn", "without batched system calls, answers from a wildcard address may leave from another one");
  }
  const [listener] = node.listeners;
  const [zone] = first;
  if (listener === undefined || zone === undefined) return;
  const address = reachable(listener.address);
  log("info", `try: dig @${hostText(address)} -p ${address.port} ${zone.name} SOA`);
}

/** The address by which this machine reaches a listener; a wildcard is every address of it. */
function reachable({ bytes, port }: Address): Address {
  if (!isWildcard(bytes)) return { bytes, port };
  const loopback = new Uint8Array(bytes.length);
  loopback[bytes.length - 1] = 1;
  if (bytes.length === 4) loopback[0] = 127;
  return { bytes: loopback, port };
}

function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return version;
}

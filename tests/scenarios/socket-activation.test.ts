import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addressToText } from "../../src/listen/address.ts";
import { openLibc } from "../../src/listen/linux/libc.ts";
import { closeDescriptor, describeSocket, openTcpListener, openUdpSocket } from "../../src/listen/linux/socket.ts";
import { openUdpClient } from "../support/dns-client.ts";
import { encodeQuery } from "../support/dns-message.ts";
import { waitFor } from "../support/wait.ts";
import { dig } from "./dig.ts";
import { EXAMPLE_ZONE, MAIN, nodeEnvironment } from "./running-node.ts";

const LOOPBACK = Uint8Array.of(127, 0, 0, 1);

test("serves sockets that the service manager hands over, and a restart answers what they queued", async () => {
  const libc = openLibc();
  assert.ok(libc);
  const directory = await mkdtemp(join(tmpdir(), "signpost-activation-"));
  const udp = openUdpSocket(libc, { bytes: LOOPBACK, port: 0 }, false);
  const address = describeSocket(libc, udp)?.address;
  assert.ok(address);
  const tcp = openTcpListener(libc, address);
  const other = openTcpListener(libc, { bytes: LOOPBACK, port: 0 });
  const endpoint = { address: "127.0.0.1", port: address.port };

  const start = async () => {
    // LISTEN_PID is the process that exec turns into the node.
    const script = 'LISTEN_PID=$$ LISTEN_FDS=3 LISTEN_FDNAMES=dns-udp:dns-tcp:other exec "$0" "$@"';
    const child = spawn("/bin/sh", ["-c", script, process.execPath, MAIN, "--zone", EXAMPLE_ZONE], {
      stdio: ["ignore", "ignore", "pipe", udp, tcp, other],
      env: { ...process.env, ...nodeEnvironment(directory, { listen: addressToText(address) }) },
    });
    let output = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
    const stop = async () => {
      child.kill("SIGTERM");
      await once(child, "exit");
    };
    await waitFor("the node serves", 20_000, () => output.includes("try: dig") || child.exitCode !== null);
    return { output: () => output, stop };
  };

  const first = await start();
  for (const transport of ["+notcp", "+tcp"]) {
    assert.match(await dig(endpoint, "example.test", "SOA", transport), /^ns1\.example\.test\. /, first.output());
  }
  assert.match(first.output(), /took over the inherited socket dns-udp on 127\.0\.0\.1:\d+ \(UDP\)/);
  assert.match(first.output(), /took over the inherited socket dns-tcp on 127\.0\.0\.1:\d+ \(TCP\)/);
  assert.match(first.output(), /inherited socket other on 127\.0\.0\.1:\d+ \(TCP\) matches no address/);
  await first.stop();

  const client = await openUdpClient(endpoint);
  const queued = client.ask(encodeQuery({ name: "www.example.test", type: 1 }), 20_000);
  const second = await start();
  assert.notEqual(await queued, undefined, "a query sent while no node ran is answered");
  client.close();
  await second.stop();
  for (const descriptor of [udp, tcp, other]) closeDescriptor(libc, descriptor);
  await rm(directory, { recursive: true });
});

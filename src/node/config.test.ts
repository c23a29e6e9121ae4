import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { addressToText } from "../listen/address.ts";
import { configFromEnvironment } from "./config.ts";

test("without variables the embedded defaults apply", () => {
  const config = configFromEnvironment({ HOME: "/root", SVCX: "1" });
  assert.deepEqual(config.node, { id: undefined, dataDir: "./data" });
  assert.deepEqual(config.dns.listen.map(addressToText), ["127.0.0.1:5353"]);
  assert.deepEqual({ ...config.dns, listen: [] }, { listen: [], threads: 0, maxUdpSize: 1232, udp: "auto" });
  assert.equal(addressToText(config.management.listen), "127.0.0.1:8080");
  assert.deepEqual(config.log, { level: "info", format: "auto" });
});

test("every setting has its variable", () => {
  const config = configFromEnvironment({
    SVC_NODE_ID: "one",
    SVC_NODE_DATA_DIR: "/var/lib/x",
    SVC_DNS_LISTEN: "0.0.0.0:53, [::]:53",
    SVC_DNS_THREADS: "8",
    SVC_DNS_MAX_UDP_SIZE: "4096",
    SVC_DNS_UDP: "dgram",
    SVC_MANAGEMENT_LISTEN: "[::1]:0",
    SVC_LOG_LEVEL: "debug",
    SVC_LOG_FORMAT: "json",
  });
  assert.deepEqual(config.node, { id: "one", dataDir: "/var/lib/x" });
  assert.deepEqual(config.dns.listen.map(addressToText), ["0.0.0.0:53", "[::]:53"]);
  assert.deepEqual({ ...config.dns, listen: [] }, { listen: [], threads: 8, maxUdpSize: 4096, udp: "dgram" });
  assert.equal(addressToText(config.management.listen), "[::1]:0");
  assert.deepEqual(config.log, { level: "debug", format: "json" });
});

test("an unusable value or unknown name is refused by the name of its variable", () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["SVC_NODE_ID", "x".repeat(64), /^SVC_NODE_ID is longer than 63 bytes$/],
    ["SVC_NODE_DATA_DIR", " ", /^SVC_NODE_DATA_DIR is empty$/],
    ["SVC_DNS_LISTEN", "localhost:53", /^SVC_DNS_LISTEN: "localhost:53" is no address and port/],
    ["SVC_DNS_LISTEN", "127.0.0.1:53,", /^SVC_DNS_LISTEN: "" is no address and port/],
    ["SVC_DNS_LISTEN", "[::1]:53,[0::1]:53", /^SVC_DNS_LISTEN names \[::1\]:53 twice$/],
    ["SVC_DNS_THREADS", "64", /^SVC_DNS_THREADS is "64"; it takes a whole number from 0 to 63$/],
    ["SVC_DNS_THREADS", "-1", /whole number from 0 to 63$/],
    ["SVC_DNS_THREADS", "1.5", /whole number/],
    ["SVC_DNS_MAX_UDP_SIZE", "511", /whole number from 512 to 4096$/],
    ["SVC_DNS_UDP", "Batch", /^SVC_DNS_UDP is "Batch"; it takes one of auto, batch, dgram$/],
    ["SVC_LOG_LEVEL", "trace", /one of debug, info, warn, error$/],
    ["SVC_DNS_TREADS", "1", /^unknown environment variable SVC_DNS_TREADS; did you mean SVC_DNS_THREADS\?$/],
    ["SVC_LOG_LEVEL_", "info", /did you mean SVC_LOG_LEVEL\?$/],
  ];
  for (const [name, value, pattern] of cases) {
    assert.throws(
      () => configFromEnvironment({ [name]: value }),
      (error) => error instanceof OperatorError && pattern.test(error.message),
      `${name}=${value}`,
    );
  }
});

test("port 0 may stand twice: each listener gets a port of its own", () => {
  assert.equal(configFromEnvironment({ SVC_DNS_LISTEN: "127.0.0.1:0,127.0.0.1:0" }).dns.listen.length, 2);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { openLab, zone } from "../../tests/support/zone-lab.ts";
import { EDNS_OPTION } from "../dns/codes.ts";
import { findOption } from "../dns/edns.ts";
import { TRANSPORT, type Transport } from "../image/counters.ts";

const ZONE = zone("example.test.", "www A 192.0.2.1\n");
const QUESTION = "www.example.test. A";

function option(lab: ReturnType<typeof openLab>, code: number, data = "", transport: Transport = TRANSPORT.UDP) {
  const options = [{ code, data: Buffer.from(data, "hex") }];
  const { edns } = lab.message(QUESTION, { edns: { options }, transport });
  const found = findOption(edns, code);
  return found === undefined ? undefined : Buffer.from(found).toString("hex");
}

test("NSID answers the node's id (RFC 5001)", () => {
  const lab = openLab([ZONE], { nodeId: "node-7" });
  assert.equal(option(lab, EDNS_OPTION.NSID), Buffer.from("node-7").toString("hex"));
});

test("NSID is given to those who ask", () => {
  const lab = openLab([ZONE], { nodeId: "node-7" });
  assert.deepEqual(lab.message(QUESTION).edns?.options, []);
});

test("a node without an id has no NSID", () => {
  assert.equal(option(openLab([ZONE]), EDNS_OPTION.NSID), undefined);
});

test("at most 63 bytes of the id are told", () => {
  const lab = openLab([ZONE], { nodeId: "n".repeat(100) });
  assert.equal(option(lab, EDNS_OPTION.NSID), Buffer.from("n".repeat(63)).toString("hex"));
});

test("a client on TCP hears the idle time in units of 100 ms (RFC 7828)", () => {
  const lab = openLab([ZONE], { tcpIdleSeconds: 17 });
  assert.equal(option(lab, EDNS_OPTION.TCP_KEEPALIVE, "", TRANSPORT.TCP), "00aa");
  assert.equal(option(lab, EDNS_OPTION.TCP_KEEPALIVE, "", TRANSPORT.DOT), "00aa");
});

test("one on UDP does not (RFC 7828 section 3.2.1), nor one over HTTPS, whose connections are HTTP's", () => {
  assert.equal(option(openLab([ZONE]), EDNS_OPTION.TCP_KEEPALIVE), undefined);
  assert.equal(option(openLab([ZONE]), EDNS_OPTION.TCP_KEEPALIVE, "", TRANSPORT.DOH), undefined);
});

test("one on TCP that does not ask does not either", () => {
  const { edns } = openLab([ZONE]).message(QUESTION, { transport: TRANSPORT.TCP });
  assert.deepEqual(edns?.options, []);
});

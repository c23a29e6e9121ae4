import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestWord } from "./nearest.ts";

test("the nearest word is the one with the fewest edits, whatever the case", () => {
  const words = ["SVC_DNS_LISTEN", "SVC_DNS_THREADS", "SVC_LOG_LEVEL"];
  assert.equal(nearestWord("SVC_DNS_LISTN", words), "SVC_DNS_LISTEN");
  assert.equal(nearestWord("svc_log_levle", words), "SVC_LOG_LEVEL");
  assert.equal(nearestWord("SVC_DNS_THREAD", words), "SVC_DNS_THREADS");
  assert.equal(nearestWord("anything", []), undefined);
});

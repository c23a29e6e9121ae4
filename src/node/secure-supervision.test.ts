import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { waitFor } from "../../tests/support/wait.ts";
import { COUNTER, threadCounters } from "../image/counters.ts";
import { createSharedImage } from "../image/shared.ts";
import { SECURE_KIND } from "../listen/secure-server.ts";
import { superviseSecure } from "./secure-supervision.ts";
import { createNodeStatus, restartsOf } from "./status.ts";

const THREAD = 2;

test("while a thread that died is not replaced, nothing listens and nothing is open", async () => {
  const shared = createSharedImage(1);
  const status = createNodeStatus(["secure"]);
  const counters = threadCounters(shared, THREAD);
  const config = {
    ...{ "transport.cert_file": "cert.pem", "transport.key_file": "key.pem" },
    ...{ "api.tls_cert_file": undefined, "api.tls_key_file": undefined, "node.data_dir": "data" },
  };
  const supervision = superviseSecure({
    plan: {
      secure: new URL("../../tests/support/dying-secure-entry.ts", import.meta.url),
      secureLifelessMs: 60_000,
    },
    ...{ shared, status, thread: THREAD, config },
    options: { nodeId: undefined, maxUdpSize: 1232, tcpIdleSeconds: 10 },
    resolve: { connectListener: () => new MessageChannel().port1 },
    log: () => {},
  });
  supervision.apply({
    settings: { dot: { bytes: Uint8Array.of(127, 0, 0, 1), port: 853 }, doh: undefined },
    number: 1,
  });
  const places = [
    COUNTER.SECURE_LISTENING + SECURE_KIND.DOT,
    COUNTER.SECURE_OPEN + SECURE_KIND.DOT,
    COUNTER.CONNECTIONS_OPEN,
  ];
  await using _ = { [Symbol.asyncDispose]: supervision.thread.ended };
  // Each replacement dies too, and the pauses between them grow.
  await waitFor("it has died, and with it what it had open", 20_000, () => {
    return restartsOf(status, "secure") >= 2 && places.every((place) => counters[place] === 0);
  });
  assert.ok((counters[COUNTER.SECURE_ACCEPTED + SECURE_KIND.DOT] ?? 0) >= 6, "totals stay");
});

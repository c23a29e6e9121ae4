/** A thread of DNS over TLS and HTTPS that says that it listens, and dies. */
import { workerData } from "node:worker_threads";
import { COUNTER, threadCounters } from "../../src/image/counters.ts";
import { SECURE_KIND } from "../../src/listen/secure-server.ts";

const counters = threadCounters(workerData.shared, workerData.thread);
counters[COUNTER.SECURE_LISTENING + SECURE_KIND.DOT] = 1;
counters[COUNTER.SECURE_OPEN + SECURE_KIND.DOT] = 3;
counters[COUNTER.CONNECTIONS_OPEN] = 3;
counters[COUNTER.SECURE_ACCEPTED + SECURE_KIND.DOT]! += 3;
process.exit(1);

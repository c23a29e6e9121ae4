/** Entry of the thread that writes the query log; see query-log-thread.ts. */
import { parentPort, workerData } from "node:worker_threads";
import type { QueryLogData } from "./query-log-messages.ts";
import { runQueryLog } from "./query-log-thread.ts";

if (parentPort === null) throw new Error("this file is a thread's entry");
const data: QueryLogData = workerData;
runQueryLog(data, parentPort);

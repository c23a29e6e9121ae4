/** The thread that resolves as a node has it, but that a question for a name whose first label is "kill" ends it. */
import { parentPort, workerData } from "node:worker_threads";
import { nameToText } from "../../src/dns/name.ts";
import { openExchanges } from "../../src/node/resolve-exchanges.ts";
import { type OpenExchanges, runResolve } from "../../src/node/resolve-thread.ts";
import type { Pool } from "../../src/resolve/resolver-options.ts";

const openDying: OpenExchanges = (data) => {
  const exchanges = openExchanges(data);
  return {
    ...exchanges,
    makePool: (route) => {
      const pool = exchanges.makePool(route);
      const ask: Pool["ask"] = (question, onDone, isLame) => {
        if (nameToText(question.name).startsWith("kill.")) process.exit(1);
        return pool.ask(question, onDone, isLame);
      };
      return { ...pool, ask };
    },
  };
};

if (parentPort !== null) runResolve(workerData, parentPort, openDying);

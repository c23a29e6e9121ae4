/** The thread that reads imports: one at a time, kept until it is dropped. */
import { parentPort } from "node:worker_threads";
import { errorText } from "../base/errors.ts";
import { type ParsedBlocklist, parseBlocklist } from "../commands/blocklist-parse.ts";
import type { ParsedImport } from "../commands/import-draft.ts";
import { parseImport } from "../commands/import-parse.ts";
import type { ImportSlice } from "../commands/import-parser.ts";
import { cutSlices, headsOf } from "../commands/import-slices.ts";
import { Refusal } from "../model/refusal.ts";
import type { ImportAnswer, ImportQuestion } from "./import-messages.ts";

let parsed: ParsedImport | undefined;
let slices: Iterator<ImportSlice> | undefined;
let blocklist: ParsedBlocklist | undefined;

function answer(question: ImportQuestion): ImportAnswer {
  switch (question.kind) {
    case "parse":
      parsed = parseImport(question.source);
      return { kind: "parsed", format: parsed.format, zones: headsOf(parsed), parseErrors: parsed.parseErrors };
    case "rewind":
      slices = parsed === undefined ? undefined : cutSlices(parsed);
      return { kind: "done" };
    case "next":
      return { kind: "slice", slice: nextSlice() };
    case "blocklist":
      blocklist = parseBlocklist(question.body);
      return { kind: "blocklist", list: blocklist.list };
    case "blocklist-parts":
      return { kind: "blocklist-parts", parts: question.keys.flatMap((key) => blocklist?.part(key) ?? []) };
    case "drop":
      parsed = undefined;
      slices = undefined;
      blocklist = undefined;
      return { kind: "done" };
  }
}

function nextSlice(): ImportSlice | undefined {
  const next = slices?.next();
  return next === undefined || next.done === true ? undefined : next.value;
}

parentPort?.on("message", (question: ImportQuestion) => {
  let reply: ImportAnswer;
  try {
    reply = answer(question);
  } catch (error) {
    const { code, message, faults, members } = error instanceof Refusal ? error : refusalOf(error);
    reply =
      code === "internal_error"
        ? { kind: "failed", detail: message }
        : { kind: "refused", code, detail: message, faults, members };
  }
  parentPort?.postMessage(reply);
});

function refusalOf(error: unknown): Refusal {
  return new Refusal("internal_error", errorText(error));
}

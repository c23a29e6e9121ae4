import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { IMPORT_ZONES_MAX, MULTIPART_HEADER_BYTES_MAX } from "../model/limits.ts";
import { Refusal } from "../model/refusal.ts";
import { readFormFiles } from "./import-multipart.ts";

const TYPE = "multipart/form-data; boundary=xyz";

function part(disposition: string, content: string, headers = ""): string {
  return `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\n${headers}\r\n${content}\r\n`;
}

function files(body: string, type = TYPE): readonly (readonly [string, string])[] {
  return readFormFiles(type, Buffer.from(body)).map(({ name, content }) => [name, Buffer.from(content).toString()]);
}

function refused(body: string | Uint8Array, pattern: RegExp, type = TYPE): void {
  assert.throws(
    () => readFormFiles(type, typeof body === "string" ? Buffer.from(body) : body),
    (error) => error instanceof Refusal && error.code === "invalid_request" && pattern.test(error.message),
  );
}

test("files come with the last part of their names, in order, line ends within them kept", () => {
  const body = `${part('name="file"; filename="a.zone"', "one\r\n\r\ntwo\n")}${part('name="second"', "")}--xyz--\r\n`;
  assert.deepEqual(files(body), [
    ["a.zone", "one\r\n\r\ntwo\n"],
    ["second", ""],
  ]);
  assert.deepEqual(
    files(`preamble\r\n${body}epilogue`, 'multipart/form-data; charset=utf-8; boundary="xyz"').length,
    2,
  );
});

test("a file's name is for showing: no path, no control characters, no end of line", () => {
  const tricks = ["../../etc/passwd", "C:\\zones\\corp.dns", "a\u0000b\u001b[31m\u2028.zone", '..\\"q\\".zone'];
  const names = tricks.map((name) => files(`${part(`name="f"; filename="${name}"`, "x")}--xyz--`)[0]?.[0]);
  assert.deepEqual(names.slice(0, 3), ["passwd", "corp.dns", "ab[31m.zone"]);
  assert.match(names[3] ?? "", /^[^/\\\r\n]*$/);
  assert.equal(files(`${part('name=""; filename=""', "x")}--xyz--`)[0]?.[0], "part 1");
});

test("a broken form is refused", () => {
  refused("", /boundary does not occur/);
  refused("--xyz--\r\n", /holds no file/);
  refused(part('name="f"', "x"), /no boundary ends it/);
  refused("--xyz\r\nContent-Disposition: form-data; name=f\r\n", /headers do not end/);
  refused(`--xyz\r\nX: ${"y".repeat(MULTIPART_HEADER_BYTES_MAX)}\r\n\r\nx\r\n--xyz--`, /headers do not end/);
  refused("--xyzzy\r\n\r\nx\r\n--xyz--", /followed by other text/);
  refused("--xyz\r\nContent-Type: text/dns\r\n\r\nx\r\n--xyz--", /no Content-Disposition/);
  refused("--xyz\r\n\r\nx\r\n--xyz--", /no Content-Disposition/);
  refused(`${part('name="f"', "x", "Content-Transfer-Encoding: base64\r\n")}--xyz--`, /Content-Transfer-Encoding/);
  refused(`${part('name="f"', "x", "Content-Type: multipart/mixed; boundary=b\r\n")}--xyz--`, /form inside of a form/);
  refused(`${part('name="f"', "x", "Content-Disposition: form-data\r\n")}--xyz--`, /two headers/);
});

test("a boundary is needed, and one that may be", () => {
  refused("x", /names no boundary/, "multipart/form-data");
  refused("x", /names no boundary/, "multipart/form-data; boundary=");
  refused("x", /boundary is not one/, `multipart/form-data; boundary=${"b".repeat(71)}`);
  refused("x", /boundary is not one/, 'multipart/form-data; boundary="a\u0007"');
});

test("a thousand parts are refused at the first over the limit", () => {
  refused(`${part('name="f"', "x").repeat(1000)}--xyz--`, new RegExp(`more than ${IMPORT_ZONES_MAX} files`));
  assert.equal(files(`${part('name="f"', "x").repeat(IMPORT_ZONES_MAX)}--xyz--`).length, IMPORT_ZONES_MAX);
});

test("whatever bytes come, there are files or a refusal", () => {
  const piece = fc.constantFrom(
    "--xyz",
    "--xyz--",
    "\r\n",
    "\r\n\r\n",
    "--",
    "\n",
    ": ",
    "Content-Disposition: form-data; name=f",
    "\0",
    "x",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 5 })), { maxLength: 30 }), (pieces) => {
      try {
        assert.ok(readFormFiles(TYPE, Buffer.from(pieces.join(""))).length > 0);
      } catch (error) {
        assert.ok(error instanceof Refusal, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

test("what a form holds comes out of it, whatever it is", () => {
  const content = fc.uint8Array({ maxLength: 200 }).filter((bytes) => !Buffer.from(bytes).includes("\r\n--xyz"));
  fc.assert(
    fc.property(fc.array(content, { minLength: 1, maxLength: 5 }), (contents) => {
      const body = Buffer.concat([
        ...contents.flatMap((bytes) => [
          Buffer.from('--xyz\r\nContent-Disposition: form-data; name="f"\r\n\r\n'),
          bytes,
          Buffer.from("\r\n"),
        ]),
        Buffer.from("--xyz--"),
      ]);
      const read = readFormFiles(TYPE, body).map((file) => Buffer.from(file.content));
      assert.deepEqual(
        read,
        contents.map((bytes) => Buffer.from(bytes)),
      );
    }),
  );
});

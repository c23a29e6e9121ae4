import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate } from "../../tests/support/certificates.ts";
import { OperatorError } from "../base/errors.ts";
import { readAuthorities } from "./upstream-authorities.ts";

test("certificates are taken out of a file; one without, or with one that is none, is refused by its name", () => {
  const directory = mkdtempSync(join(tmpdir(), "signpost-authorities-"));
  const path = join(directory, "ca.pem");
  const refusalOf = (text: string | undefined): string => {
    if (text !== undefined) writeFileSync(path, text);
    try {
      return readAuthorities(path);
    } catch (error) {
      assert.ok(error instanceof OperatorError);
      assert.ok(error.message.startsWith(`forwarders.ca_file ${path}: `), error.message);
      return error.message;
    }
  };
  try {
    assert.match(refusalOf(undefined), /ENOENT/);
    const [one, other] = ["one", "other"].map((commonName) =>
      makeCertificate({ commonName, isAuthority: true }).cert.trim(),
    );
    assert.equal(refusalOf(`# ours\n${one}\nand\n${other}\n`), `${one}\n${other}`);
    assert.match(refusalOf("nothing\n"), /no certificate/);
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
    assert.match(refusalOf(`${one}\n${broken}`), /forwarders\.ca_file/);
    assert.match(refusalOf("x".repeat(2 ** 20 + 1)), /larger/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

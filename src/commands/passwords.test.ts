import assert from "node:assert/strict";
import { argon2Sync } from "node:crypto";
import { test } from "node:test";
import { Refusal } from "../model/refusal.ts";
import { createPasswords } from "./passwords.ts";

const PASSWORD = "correct horse battery";

test("a password is known by its hash alone, each hash with a salt of its own", async () => {
  const { hash, verify } = createPasswords();
  const [first, second] = await Promise.all([hash(PASSWORD), hash(PASSWORD)]);
  assert.notEqual(first, second);
  assert.match(first, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.equal(await verify(PASSWORD, first), true);
  assert.equal(await verify(PASSWORD, second), true);
  assert.equal(await verify(`${PASSWORD}!`, first), false);
  assert.equal(await verify(PASSWORD, undefined), false);
  assert.equal(await verify(PASSWORD, "$argon2id$v=19$m=1$broken"), false);
});

test("a hash made elsewhere with other parameters is understood", async () => {
  const salt = Buffer.from("0123456789abcdef");
  const tag = argon2Sync("argon2id", {
    message: PASSWORD,
    nonce: salt,
    parallelism: 2,
    tagLength: 24,
    memory: 64,
    passes: 3,
  });
  const text = (bytes: Buffer) => bytes.toString("base64").replaceAll("=", "");
  const phc = `$argon2id$v=19$m=64,t=3,p=2$${text(salt)}$${text(tag)}`;
  const { verify } = createPasswords();
  assert.equal(await verify(PASSWORD, phc), true);
  assert.equal(await verify("another password", phc), false);
});

test("accents composed differently are the same password", async () => {
  const { hash, verify } = createPasswords();
  const composed = await hash("pass\u00e9-pass\u00e9-pass\u00e9");
  assert.equal(await verify("passe\u0301-passe\u0301-passe\u0301", composed), true);
});

test("a flood is refused at once beyond the queue, and the queue is worked off", async () => {
  const { verify } = createPasswords();
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => verify(PASSWORD, undefined)));
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  assert.equal(refused.length, 100 - 66);
  for (const outcome of refused) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof Refusal);
    assert.equal(outcome.reason.code, "rate_limited");
  }
  assert.equal(await verify(PASSWORD, undefined), false);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { createServer } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { createFieldDecoder, encodeFields } from "./http2-fields.ts";
import { FRAME, FRAME_HEADER_BYTES, makeSettings, PREFACE } from "./http2-frames.ts";
import { decodeHuffman } from "./http2-huffman.ts";

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(" ", ""), "hex");
}

function huffman(hex: string): string | undefined {
  const code = bytes(hex);
  return decodeHuffman(code, 0, code.length);
}

test("texts of RFC 7541 appendix C", () => {
  assert.equal(huffman("f1e3 c2e5 f23a 6ba0 ab90 f4ff"), "www.example.com");
  assert.equal(huffman("a8eb 1064 9cbf"), "no-cache");
  assert.equal(huffman("25a8 49e9 5ba9 7d7f"), "custom-key");
  assert.equal(huffman("25a8 49e9 5bb8 e8b4 bf"), "custom-value");
  assert.equal(huffman("d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"), "Mon, 21 Oct 2013 20:13:21 GMT");
  const cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
  const code =
    "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07";
  assert.equal(huffman(code), cookie);
});

test("padding is the first bits of the end of the string, and fewer than eight (RFC 7541 section 5.2)", () => {
  assert.equal(huffman(""), "");
  assert.equal(huffman("1f"), "a");
  assert.equal(huffman("18"), undefined);
  assert.equal(huffman("1fff"), undefined);
  assert.equal(huffman("ff"), undefined);
  assert.equal(huffman("ffffffff"), undefined);
  // The end of the string itself.
  assert.equal(huffman("fffffffcff"), undefined);
});

test("requests of RFC 7541 appendix C.4, with the table that grows between them", () => {
  const { decode } = createFieldDecoder(1_000);
  const get = { method: "GET", contentType: undefined, contentLength: undefined };
  assert.deepEqual(decode(bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")), { ...get, target: "/" });
  assert.deepEqual(decode(bytes("8286 84be 5886 a8eb 1064 9cbf")), { ...get, target: "/" });
  const third = bytes("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
  assert.deepEqual(decode(third), { ...get, target: "/index.html" });
});

test("what a client of node:http2 sends is understood, texts of every byte among it", { timeout: 60_000 }, async () => {
  const blocks: Buffer[] = [];
  let received = Buffer.alloc(0);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    // Without limits to streams; the client waits for it.
    socket.write(makeSettings([]));
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      blocks.splice(0, Number.POSITIVE_INFINITY, ...headerBlocks(received));
      if (blocks.length === wanted.length) socket.destroy();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  // Ten of a byte with a short code each, so that the sender's choice is the code and not the plain text.
  const visible = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte > 0x20 && byte !== 0x7f);
  const wanted = visible.map((byte) => `${"0".repeat(24)}${String.fromCharCode(byte)}${"e".repeat(24)}`);
  const session = connect(`http://127.0.0.1:${address.port}`);
  session.on("error", () => {});
  for (const text of wanted) {
    session.request({ ":path": `/${text.length}`, "content-type": text }).on("error", () => {});
  }
  await once(session, "close");
  server.close();
  const { decode } = createFieldDecoder(16_384);
  const texts = blocks.map((block) => {
    const fields = decode(block);
    return typeof fields === "string" ? fields : fields.contentType;
  });
  assert.deepEqual(texts, wanted);
});

function headerBlocks(received: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let at = PREFACE.length; at + FRAME_HEADER_BYTES <= received.length; ) {
    const end = at + FRAME_HEADER_BYTES + received.readUIntBE(at, 3);
    if (end > received.length) break;
    if (received[at + 3] === FRAME.HEADERS) blocks.push(received.subarray(at + FRAME_HEADER_BYTES, end));
    at = end;
  }
  return blocks;
}

test("blocks that are none are told, and nothing that stands in them throws", () => {
  for (const hex of [
    "80",
    "ff80",
    "be",
    "41",
    "4105",
    "418c f1e3",
    "00",
    "7fffffffff7f",
    "3fe2 1f",
    "82 20",
    "ffffffffffffff7f",
  ]) {
    assert.equal(createFieldDecoder(1_000).decode(bytes(hex)), "broken", hex);
  }
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 5 }), (parts) => {
      const { decode } = createFieldDecoder(1_000);
      for (const part of parts) decode(Buffer.from(part));
    }),
    { numRuns: 2_000 },
  );
});

test("lists that are too long are told, also where one byte stands for a long field", () => {
  const long = Buffer.concat([bytes("40 01 78 7f 91 02"), Buffer.alloc(400, "y")]);
  const { decode } = createFieldDecoder(1_000);
  assert.notEqual(decode(long), "large");
  assert.equal(decode(Buffer.alloc(3, 0xbe)), "large");
  // The table is as it was.
  assert.notEqual(decode(Buffer.alloc(2, 0xbe)), "large");
});

test("the sender's table is no larger than 4,096 bytes, and may be made smaller", () => {
  const { decode } = createFieldDecoder(1_000);
  assert.notEqual(decode(bytes("40 01 78 01 79")), "broken");
  assert.notEqual(decode(bytes("be")), "broken");
  assert.notEqual(decode(bytes("20 82")), "broken");
  assert.equal(decode(bytes("be")), "broken");
  assert.equal(createFieldDecoder(1_000).decode(bytes("3fe1 1f 82")) === "broken", false);
  assert.equal(createFieldDecoder(1_000).decode(bytes("3fe2 1f 82")), "broken");
});

test("fields of an answer", () => {
  assert.equal(encodeFields(200, {}).toString("hex"), "88");
  assert.equal(encodeFields(405, { allow: "GET" }).toString("hex"), "0803343035" + "0f0703474554");
  const fields = encodeFields(200, { "content-length": "7", "cache-control": "max-age=1" });
  assert.equal(fields.toString("latin1"), "\x88\x0f\x0d\x017\x0f\x09\x09max-age=1");
});

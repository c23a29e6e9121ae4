import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DOH_MEDIA_TYPE, readRequest } from "./https-request.ts";

const MESSAGE = Buffer.from("00000100000100000000000003777777076578616d706c6503636f6d0000010001", "hex");

function get(target: string) {
  const asked = readRequest({ method: "GET", target, contentType: undefined, contentLength: undefined });
  return asked.kind === "refused"
    ? asked.status
    : asked.kind === "message"
      ? asked.message.toString("hex")
      : asked.kind;
}

function post(contentType: string | undefined, contentLength?: string) {
  const asked = readRequest({ method: "POST", target: "/dns-query", contentType, contentLength });
  return asked.kind === "refused" ? asked.status : asked.kind;
}

test("the example of RFC 8484 section 4.1.1", () => {
  assert.equal(get("/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"), MESSAGE.toString("hex"));
});

test("any message is read as it was encoded, whatever variables stand beside it", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 12, maxLength: 600 }),
      fc.constantFrom("", "a=b&", "%64=1&x&"),
      (bytes, before) => {
        const message = Buffer.from(bytes);
        assert.equal(get(`/dns-query?${before}dns=${message.toString("base64url")}`), message.toString("hex"));
      },
    ),
  );
});

test("what is no base64url without padding, too short, missing or said twice is 400", () => {
  const text = MESSAGE.toString("base64url");
  for (const query of [
    "",
    "?",
    "?dns=",
    "?dns",
    "?DNS=AAAA",
    "?dns=AAAA",
    "?dns=A",
    `?dns=${text}=`,
    `?dns=${text}%3D`,
    `?dns=a+${text}`,
    `?dns=${text}&dns=${text}`,
    `?dns=${text}A.`,
  ]) {
    assert.equal(get(`/dns-query${query}`), 400, query);
  }
  assert.equal(get(`/dns-query?dns=${"A".repeat(49)}`), 400);
});

test("other paths are 404, before anything else is looked at", () => {
  for (const target of [
    "/",
    "",
    "*",
    "/dns-query/",
    "/dns-queryx?dns=AAAA",
    "/DNS-QUERY",
    "/healthz",
    "/api/v1/zones",
    "//dns-query",
  ]) {
    assert.equal(get(target), 404, target);
    assert.equal(
      readRequest({ method: "PUT", target, contentType: undefined, contentLength: undefined }).kind,
      "refused",
    );
  }
});

test("other methods are 405, HEAD among them", () => {
  for (const method of ["HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", ""]) {
    const asked = readRequest({
      method,
      target: "/dns-query?dns=AAAA",
      contentType: undefined,
      contentLength: undefined,
    });
    assert.deepEqual(asked, { kind: "refused", status: 405 }, method);
  }
});

test("a body has its media type, whatever its case and parameters, and says no more than a message may have", () => {
  assert.equal(post(DOH_MEDIA_TYPE), "body");
  assert.equal(post("Application/DNS-Message; charset=x"), "body");
  for (const type of [undefined, "", "text/plain", "application/dns-messages", "application/dns-json"]) {
    assert.equal(post(type), 415, String(type));
  }
  assert.equal(post(DOH_MEDIA_TYPE, "65535"), "body");
  assert.equal(post(DOH_MEDIA_TYPE, "65536"), 413);
  assert.equal(post(DOH_MEDIA_TYPE, "99999999999999999999"), 413);
});

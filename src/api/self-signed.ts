/**
 * A self-signed certificate for a server (RFC 5280), ECDSA on P-256. The few structures of one such certificate are
 * written out here as DER; a library for all of X.509 is a hundred times the size.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { ipFromText } from "../base/ip.ts";

export type SelfSigned = { readonly cert: string; readonly key: string };

/** PEM of a certificate for `names` (DNS names and addresses), valid between the two times in milliseconds since 1970. */
export function makeSelfSigned(names: readonly string[], fromMs: number, toMs: number): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(set(sequence(objectId("2.5.4.3"), der(0x0c, Buffer.from("signpost")))));
  const toSign = sequence(
    der(0xa0, integer(Buffer.of(2))),
    // Positive, and never twice for one issuer.
    integer(Buffer.concat([Buffer.of(1), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    name,
    sequence(time(fromMs), time(toMs)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions(names))),
  );
  const signature = sign("sha256", toSign, privateKey);
  const certificate = sequence(toSign, ECDSA_WITH_SHA256, der(0x03, Buffer.of(0), signature));
  return {
    cert: pem("CERTIFICATE", certificate),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function extensions(names: readonly string[]): readonly Buffer[] {
  const general = names.map((name) => {
    const address = ipFromText(name);
    return address === undefined ? der(0x82, Buffer.from(name, "ascii")) : der(0x87, address);
  });
  return [
    // No certificate authority.
    extension("2.5.29.19", true, sequence()),
    // digitalSignature, and for TLS servers only.
    extension("2.5.29.15", true, der(0x03, Buffer.of(7, 0x80))),
    extension("2.5.29.37", false, sequence(objectId("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.17", false, sequence(...general)),
  ];
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.of(0xff))] : [];
  return sequence(objectId(id), ...critical, der(0x04, value));
}

/** Tag, length, content (X.690 section 8.1). */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(content);
  if (value.length < 0x80) return Buffer.concat([Buffer.of(tag, value.length), value]);
  const length = Buffer.from(value.length.toString(16).padStart(value.length > 0xff ? 4 : 2, "0"), "hex");
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length), length, value]);
}

export function sequence(...content: readonly Uint8Array[]): Buffer {
  return der(0x30, ...content);
}

function set(content: Uint8Array): Buffer {
  return der(0x31, content);
}

function integer(content: Uint8Array): Buffer {
  return der(0x02, content);
}

/** X.690 section 8.19: the first two arcs in one, then seven bits a byte. */
function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(0x06, Uint8Array.from(bytes));
}

/** Two digits of the year up to 2049 (RFC 5280 section 4.1.2.5). */
function time(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  const isShort = new Date(ms).getUTCFullYear() < 2050;
  return isShort ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

const ECDSA_WITH_SHA256 = sequence(objectId("1.2.840.10045.4.3.2"));

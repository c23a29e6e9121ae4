/** Certificates for tests (RFC 5280), ECDSA on P-256: authorities, and what they sign, with any names and times. */
import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { der, sequence } from "../../src/api/self-signed.ts";
import { ipFromText } from "../../src/base/ip.ts";

export type TestCertificate = { readonly cert: string; readonly key: string; readonly commonName: string };

export type CertificateWish = {
  readonly commonName: string;
  /** DNS names and addresses. */
  readonly names?: readonly string[];
  /** Left out: it signs itself. */
  readonly issuer?: TestCertificate;
  readonly isAuthority?: boolean;
  /** Milliseconds since 1970; left out: from yesterday to tomorrow. */
  readonly fromMs?: number;
  readonly toMs?: number;
};

const DAY_MS = 86_400_000;

export function makeCertificate(wish: CertificateWish): TestCertificate {
  const { commonName, names = [], issuer, isAuthority = false } = wish;
  const { fromMs = Date.now() - DAY_MS, toMs = Date.now() + DAY_MS } = wish;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer?.commonName ?? commonName),
    sequence(time(fromMs), time(toMs)),
    nameOf(commonName),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions(names, isAuthority))),
  );
  const signature = sign("sha256", toSign, createPrivateKey(issuer?.key ?? key));
  const bytes = sequence(toSign, ECDSA_WITH_SHA256, der(0x03, Buffer.of(0), signature));
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return { cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`, key, commonName };
}

function extensions(names: readonly string[], isAuthority: boolean): Buffer[] {
  const general = names.map((name) => {
    const address = ipFromText(name);
    return address === undefined ? der(0x82, Buffer.from(name, "ascii")) : der(0x87, address);
  });
  const isTrue = der(0x01, Buffer.of(0xff));
  return [
    extension("551d13", isAuthority ? sequence(isTrue) : sequence()),
    // keyCertSign, or digitalSignature.
    extension("551d0f", isAuthority ? der(0x03, Buffer.of(2, 0x04)) : der(0x03, Buffer.of(7, 0x80))),
    ...(names.length === 0 ? [] : [extension("551d11", sequence(...general))]),
  ];
}

function extension(idHex: string, value: Buffer): Buffer {
  return sequence(der(0x06, Buffer.from(idHex, "hex")), der(0x04, value));
}

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(der(0x06, Buffer.from("550403", "hex")), der(0x0c, Buffer.from(commonName)))));
}

function time(ms: number): Buffer {
  return der(0x18, Buffer.from(`${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`));
}

const ECDSA_WITH_SHA256 = sequence(der(0x06, Buffer.from("2a8648ce3d040302", "hex")));

/** A running node with DNS over TLS and HTTPS, and a certificate that an authority of the tests vouches for. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { makeCertificate, type TestCertificate } from "../support/certificates.ts";
import { runToEnd } from "../support/process.ts";
import { waitFor } from "../support/wait.ts";
import { signIn } from "./api-client.ts";
import type { ScenarioNode } from "./running-node.ts";

export const directory = await mkdtemp(join(tmpdir(), "signpost-transport-"));
after(() => rm(directory, { recursive: true, force: true }));
const authority = makeCertificate({ commonName: "test authority", isAuthority: true });
export const caFile = join(directory, "ca.pem");
export const certFile = join(directory, "cert.pem");
export const keyFile = join(directory, "key.pem");
await writeFile(caFile, authority.cert);

export function certificateFor(name: string): TestCertificate {
  return makeCertificate({ commonName: name, names: [name, "127.0.0.1"], issuer: authority });
}

export async function useCertificate({ cert, key }: TestCertificate): Promise<void> {
  await writeFile(keyFile, key);
  await writeFile(certFile, cert);
}

await useCertificate(certificateFor("dns.test"));
export const env = { SVC_TRANSPORT_CERT_FILE: certFile, SVC_TRANSPORT_KEY_FILE: keyFile };

export async function put(node: ScenarioNode, settings: object): Promise<void> {
  await using api = await signIn(node.api);
  const { status, body } = await api.ask("PUT", "/transport-config", settings);
  assert.equal(status, 200, JSON.stringify(body));
}

export type Ports = { readonly dot: number; readonly doh: number };

/** Switches both on; 0 is a port that the system chooses. */
export async function switchOn(node: ScenarioNode, { dot, doh }: Ports = { dot: 0, doh: 0 }): Promise<Ports> {
  await put(node, {
    ...{ dot_enabled: true, dot_listen_addr: `127.0.0.1:${dot}` },
    ...{ doh_enabled: true, doh_listen_addr: `127.0.0.1:${doh}` },
  });
  const portOf = (name: string) =>
    waitFor(`${name} listens`, 20_000, () => {
      const line = node.messages().findLast((message) => message.startsWith(`${name} on 127.0.0.1:`));
      return line === undefined ? undefined : Number(line.split(":").at(-1));
    });
  return { dot: await portOf("DNS over TLS"), doh: await portOf("DNS over HTTPS") };
}

/** The answer's section, or what else it says. */
export function kdig(port: number, ...words: string[]): Promise<string> {
  return runToEnd("kdig", ["@127.0.0.1", "-p", String(port), "+timeout=5", "+retry=0", ...words], 30_000);
}

export const VERIFIED = [`+tls-ca=${caFile}`, "+tls-hostname=dns.test"];

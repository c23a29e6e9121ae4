/**
 * A certificate authority that speaks as much ACME (RFC 8555) as certbot and lego need for one order by dns-01. It looks at the TXT
 * record as an authority does (section 8.4), by asking the name server under test, and signs what it was asked for.
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "./certificates.ts";
import { runToEnd } from "./process.ts";

export type AcmeServer = AsyncDisposable & {
  readonly directoryUrl: string;
  /** Certificate of the server and of the authority that signs, PEM. */
  readonly caFile: string;
  /** Names that were proved to be the client's. */
  readonly proved: () => readonly string[];
};

type Jwk = Readonly<Record<string, string>>;
type Order = { readonly name: string; readonly token: string; status: string; certificate: string };

/** RFC 7638: the members that a key needs, in the order of their names. */
function thumbprint(jwk: Jwk): string {
  const members = jwk.kty === "EC" ? ["crv", "kty", "x", "y"] : ["e", "kty", "n"];
  const text = JSON.stringify(Object.fromEntries(members.map((member) => [member, jwk[member]])));
  return createHash("sha256").update(text).digest("base64url");
}

async function bodyOf(request: IncomingMessage): Promise<{ readonly jwk: Jwk | undefined; readonly payload: unknown }> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  if (chunks.length === 0) return { jwk: undefined, payload: undefined };
  const jws = JSON.parse(Buffer.concat(chunks).toString());
  const { jwk } = JSON.parse(Buffer.from(jws.protected, "base64url").toString());
  const payload = jws.payload === "" ? undefined : JSON.parse(Buffer.from(jws.payload, "base64url").toString());
  return { jwk, payload };
}

type Reply = (status: number, body: unknown, headers?: Record<string, string>) => void;

type Authority = {
  readonly url: string;
  readonly directory: string;
  readonly caFile: string;
  readonly caKey: string;
  readonly cert: string;
  readonly txtOf: (name: string) => Promise<readonly string[]>;
  readonly proved: string[];
  accountKey: Jwk;
  order: Order | undefined;
};

async function sign({ directory, caFile, caKey, cert }: Authority, csr: string): Promise<string> {
  const der = join(directory, "request.der");
  const out = join(directory, "signed.pem");
  await writeFile(der, Buffer.from(csr, "base64url"));
  const words = ["x509", "-req", "-inform", "DER", "-in", der, "-CA", caFile, "-CAkey", caKey, "-days", "5"];
  await runToEnd("openssl", [...words, "-set_serial", "7", "-copy_extensions", "copy", "-out", out], 30_000);
  return (await readFile(out, "utf8")) + cert;
}

function orderView(url: string, { name, status, certificate }: Order): unknown {
  return {
    ...{ status, identifiers: [{ type: "dns", value: name }], authorizations: [`${url}/authz`] },
    ...{ finalize: `${url}/finalize`, ...(certificate !== "" && { certificate: `${url}/cert` }) },
  };
}

function challengeView(url: string, { token, status }: Order): unknown {
  return { type: "dns-01", url: `${url}/challenge`, token, status: status === "pending" ? "pending" : "valid" };
}

/** RFC 8555 section 8.4. */
async function validate({ accountKey, proved, txtOf }: Authority, order: Order): Promise<void> {
  const wanted = createHash("sha256")
    .update(`${order.token}.${thumbprint(accountKey)}`)
    .digest("base64url");
  const texts = await txtOf(`_acme-challenge.${order.name}`);
  order.status = texts.includes(wanted) ? "ready" : "invalid";
  if (order.status === "ready") proved.push(order.name);
}

async function answer(authority: Authority, request: IncomingMessage, reply: Reply): Promise<void> {
  const { jwk, payload } = await bodyOf(request);
  const asked = payload as { identifiers?: { value: string }[]; csr?: string } | undefined;
  const { url } = authority;
  switch (request.url) {
    case "/directory":
      return reply(200, {
        ...{ newNonce: `${url}/nonce`, newAccount: `${url}/account`, newOrder: `${url}/new-order`, meta: {} },
      });
    case "/nonce":
      return reply(200, "");
    case "/account":
      authority.accountKey = jwk ?? authority.accountKey;
      return reply(201, { status: "valid", contact: [], orders: `${url}/orders` }, { location: `${url}/account/1` });
    case "/new-order": {
      const name = asked?.identifiers?.[0]?.value ?? "";
      authority.order = { name, token: randomBytes(32).toString("base64url"), status: "pending", certificate: "" };
      return reply(201, orderView(url, authority.order), { location: `${url}/order/1` });
    }
  }
  if (authority.order === undefined) return reply(404, { type: "about:blank" });
  await answerOrder(authority, authority.order, { path: request.url, csr: asked?.csr ?? "" }, reply);
}

type Asked = { readonly path: string | undefined; readonly csr: string };

async function answerOrder(authority: Authority, order: Order, { path, csr }: Asked, reply: Reply): Promise<void> {
  const { url } = authority;
  switch (path) {
    case "/order/1":
      return reply(200, orderView(url, order));
    case "/authz": {
      const status = { pending: "pending", invalid: "invalid" }[order.status] ?? "valid";
      const identifier = { type: "dns", value: order.name };
      return reply(200, { status, identifier, challenges: [challengeView(url, order)] });
    }
    case "/challenge":
      await validate(authority, order);
      return reply(200, challengeView(url, order), { link: `<${url}/authz>;rel="up"` });
    case "/finalize":
      order.certificate = await sign(authority, csr);
      order.status = "valid";
      return reply(200, orderView(url, order), { location: `${url}/order/1` });
    case "/cert":
      return reply(200, order.certificate);
  }
  reply(404, { type: "about:blank" });
}

/** `txtOf` gives the texts that the name server has at a name. */
export async function startAcmeServer(txtOf: (name: string) => Promise<readonly string[]>): Promise<AcmeServer> {
  const directory = await mkdtemp(join(tmpdir(), "signpost-acme-"));
  const { cert, key, commonName } = makeCertificate({ commonName: "acme authority", isAuthority: true });
  const own = makeCertificate({
    commonName: "localhost",
    names: ["localhost", "127.0.0.1"],
    issuer: { cert, key, commonName },
  });
  const caFile = join(directory, "ca.pem");
  const caKey = join(directory, "ca-key.pem");
  await writeFile(caFile, cert);
  await writeFile(caKey, key);
  const proved: string[] = [];
  const server = createServer({ cert: own.cert, key: own.key }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const parts = { url, directory, caFile, caKey, cert, txtOf, proved };
  const authority: Authority = { ...parts, accountKey: {}, order: undefined };
  server.on("request", (request, response) => {
    const reply: Reply = (status, body, headers = {}) => {
      const isText = typeof body === "string";
      response.writeHead(status, {
        "content-type": isText ? "application/pem-certificate-chain" : "application/json",
        "replay-nonce": randomBytes(12).toString("base64url"),
        ...headers,
      });
      response.end(request.method === "HEAD" ? undefined : isText ? body : JSON.stringify(body));
    };
    answer(authority, request, reply).catch((error: unknown) => reply(500, { detail: String(error) }));
  });
  return {
    directoryUrl: `${url}/directory`,
    caFile,
    proved: () => proved,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

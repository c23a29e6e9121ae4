/** For whom names are resolved: clients on several addresses ask by every transport, and get what their network is offered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { requireProgram } from "../support/peers.ts";
import { runToEnd } from "../support/process.ts";
import { type Forwarding, startForwarding, ZONE } from "./forward-world.ts";
import { create } from "./notify-world.ts";
import { env, switchOn } from "./transport-world.ts";

const INSIDE = "127.0.0.2";
const OUTSIDE = "127.0.0.3";
const TABLE = `
www.public.example. 300 A 198.51.100.80
other.public.example. 300 A 198.51.100.81
alias.public.example. 300 A 198.51.100.82
`;
const ALLOWED = { allow_networks: [`${INSIDE}/32`] };
const KEY = { name: "full.", secret: Buffer.alloc(32, 1).toString("base64") };

async function startWorld(udp: string): Promise<Forwarding> {
  const world = await startForwarding({ table: TABLE, isPatient: true, env: { ...env, SVC_DNS_UDP: udp } });
  await world.record({ name: "app", type: "A", values: [{ value: "192.0.2.1" }] });
  await world.record({ name: "out", type: "CNAME", values: [{ value: "www.public.example." }] });
  await world.record({ name: "alias", type: "ALIAS", values: [{ value: "alias.public.example." }] });
  await world.put("/config/recursion", ALLOWED);
  return world;
}

/** The status, the flags and the extended error that `kdig` shows, and the answer's data. */
async function kdig(from: string, port: number, question: string, ...words: string[]): Promise<string> {
  const [name = "", type = ""] = question.split(" ");
  const asked = [
    "@127.0.0.1",
    "-p",
    String(port),
    "-b",
    from,
    "+timeout=10",
    "+retry=0",
    ...words,
    "-q",
    name,
    "-t",
    type,
  ];
  const text = await runToEnd("kdig", asked, 30_000);
  const status = /opcode: QUERY; status: (\w+)/.exec(text)?.[1];
  const flags = /Flags: ([a-z ]*);/.exec(text)?.[1];
  const error = /EDE: (\d+)/.exec(text)?.[1];
  const data = [...text.matchAll(/^[^;\s].*\t(?:A|CNAME)\t(.*)$/gm)].map(([, rdata]) => rdata);
  return [status, flags, ...(error === undefined ? [] : [`ede ${error}`]), ...data].join(" ");
}

test("a forwarder is for the networks that are allowed, our own names are for everybody", async () => {
  await using world = await startWorld("auto");
  const ask = async (question: string, from: string) => {
    const { rcode, flags, data, ede } = await world.ask(question, { from });
    return [rcode, flags, ede, ...data];
  };
  const www = "www.public.example. A 198.51.100.80";
  assert.deepEqual(await ask("www.public.example A", OUTSIDE), ["REFUSED", "rd", 18]);
  assert.deepEqual(world.asked(), [], "nobody was asked for it");
  assert.deepEqual(await ask("www.public.example A", INSIDE), ["NOERROR", "rd ra", undefined, www]);
  assert.deepEqual(await ask("www.public.example A", OUTSIDE), ["REFUSED", "rd", 18], "the cache is not for it");
  const app = `app.${ZONE} A 192.0.2.1`;
  assert.deepEqual(await ask(`app.${ZONE} A`, OUTSIDE), ["NOERROR", "aa rd", undefined, app]);
  assert.deepEqual(await ask(`app.${ZONE} A`, INSIDE), ["NOERROR", "aa rd ra", undefined, app]);
  const out = `out.${ZONE} CNAME www.public.example.`;
  assert.deepEqual(await ask(`out.${ZONE} A`, OUTSIDE), ["NOERROR", "aa rd", undefined, out]);
  assert.deepEqual(await ask(`out.${ZONE} A`, INSIDE), ["NOERROR", "aa rd ra", undefined, out, www]);
  const alias = `alias.${ZONE} A 198.51.100.82`;
  assert.deepEqual(await ask(`alias.${ZONE} A`, OUTSIDE), ["NOERROR", "aa rd", undefined, alias]);
  const metrics = await (await world.node.get("/metrics")).text();
  assert.match(metrics, /^svc_dns_recursion_refused_total 3$/m);

  const { body } = await world.api.ask("GET", `/explain?name=www.public.example&client=${OUTSIDE}`);
  assert.deepEqual([body.answer.rcode, body.answer.extended_error], ["REFUSED", 18]);
  assert.match(body.reasons.at(-1).text, /recursion is not offered to/);

  await world.put("/config/recursion", { allow_networks: ["0.0.0.0/0", "::/0"] });
  assert.deepEqual(await ask("www.public.example A", OUTSIDE), ["NOERROR", "rd ra", undefined, www]);
  await world.put("/config/recursion", { allow_networks: [] });
  assert.deepEqual(await ask("www.public.example A", INSIDE), ["REFUSED", "rd", 18]);
  await world.put("/config/recursion", { allow_networks: null });
  assert.deepEqual(await ask("www.public.example A", INSIDE), ["NOERROR", "rd ra", undefined, www]);
});

test("TCP, TLS, HTTPS, signed queries and Node's sockets are no way around it", async (t) => {
  if (requireProgram(t, "kdig") === undefined) return;
  await using world = await startWorld("dgram");
  const { dot, doh } = await switchOn(world.node);
  await create(world.api, "/tsig-keys", { ...KEY, algorithm: "hmac-sha256" });
  const port = world.node.dns[0]?.port ?? 0;
  const ways = [
    [port, []],
    [port, ["+tcp"]],
    [dot, ["+tls"]],
    [doh, ["+https"]],
    [port, ["-y", `hmac-sha256:${KEY.name}:${KEY.secret}`]],
    [port, ["+tcp", "-y", `hmac-sha256:${KEY.name}:${KEY.secret}`]],
  ] as const;
  for (const [at, words] of ways) {
    const how = words.slice(0, 2).join(" ");
    const outside = (question: string) => kdig(OUTSIDE, at, question, "+edns", ...words);
    assert.equal(await outside("other.public.example A"), "REFUSED qr rd ede 18", how);
    assert.equal(await outside(`app.${ZONE} A`), "NOERROR qr aa rd 192.0.2.1", how);
    assert.equal(
      await kdig(INSIDE, at, "www.public.example A", "+edns", ...words),
      "NOERROR qr rd ra 198.51.100.80",
      how,
    );
  }
  assert.deepEqual(world.asked(), ["www.public.example. A"]);
});

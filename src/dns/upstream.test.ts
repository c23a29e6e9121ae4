import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { parseUpstream, upstreamText } from "./upstream.ts";

function canonical(text: string): string {
  const parsed = parseUpstream(text);
  return parsed.kind === "upstream" ? upstreamText(parsed.upstream) : `fault: ${parsed.detail}`;
}

test("an upstream is an address or a host name, with a port or without", () => {
  const table = [
    ["192.0.2.1", "192.0.2.1:53"],
    ["192.0.2.1:5353", "192.0.2.1:5353"],
    ["2001:DB8::1", "[2001:db8::1]:53"],
    ["[2001:db8:0::1]", "[2001:db8::1]:53"],
    ["[2001:db8::1]:5353", "[2001:db8::1]:5353"],
    ["NS1.Example.", "ns1.example:53"],
    ["ns1.example:5353", "ns1.example:5353"],
    ["localhost", "localhost:53"],
    ["_dns.internal", "_dns.internal:53"],
    ["tls://192.0.2.1", "tls://192.0.2.1:853"],
    ["TLS://192.0.2.1:8853#DNS.Example.", "tls://192.0.2.1:8853#dns.example"],
    ["tls://[2001:db8::1]#dns.example", "tls://[2001:db8::1]:853#dns.example"],
    ["tls://2001:db8::1", "tls://[2001:db8::1]:853"],
    ["tls://dns.example", "tls://dns.example:853"],
  ] as const;
  for (const [text, expected] of table) assert.equal(canonical(text), expected, text);
});

test("what is none says why", () => {
  const table: readonly (readonly [string, RegExp])[] = [
    ["", /address or a host name/],
    [" 192.0.2.1", /name of a host/],
    ["192.0.2", /name of a host/],
    ["192.0.2.256", /name of a host/],
    ["192.0.2.01", /name of a host/],
    ["192.0.2.1:", /address or a host name/],
    ["192.0.2.1:0", /port between 1 and 65535/],
    ["192.0.2.1:65536", /port between/],
    ["192.0.2.1:053", /port between/],
    ["192.0.2.1:53:53", /address or a host name/],
    ["[192.0.2.1]:53", /IPv4 address in brackets/],
    ["[ns.example]:53", /IPv6 address within/],
    ["[fe80::1%eth0]:53", /IPv6 address within/],
    ["::ffff:192.0.2.1", /as the IPv4 address 192\.0\.2\.1/],
    ["0.0.0.0", /address of one server/],
    ["::", /address of one server/],
    ["224.0.0.251", /address of one server/],
    ["255.255.255.255:53", /address of one server/],
    ["[ff02::fb]:53", /address of one server/],
    ["fe80::1", /link-local/],
    ["[febf::1]:53", /link-local/],
    ["a..b", /name of a host/],
    ["-a.example", /name of a host/],
    ["ns example", /name of a host/],
    [`${"a".repeat(64)}.example`, /name of a host/],
    [`${"abcdefgh.".repeat(29)}example`, /name of a host/],
    ["https://dns.example/dns-query", /must not begin with https/],
    ["udp://192.0.2.1", /must not begin with udp/],
    ["192.0.2.1#dns.example", /behind tls:\/\/ only/],
    ["tls://192.0.2.1#", /name of the certificate/],
    ["tls://192.0.2.1#192.0.2.1", /name of the certificate/],
    ["tls://", /address or a host name/],
  ];
  for (const [text, detail] of table) {
    const parsed = parseUpstream(text);
    assert.equal(parsed.kind, "fault", text);
    if (parsed.kind === "fault") assert.match(parsed.detail, detail, text);
  }
});

test("any text gives an upstream whose spelling reads back as itself, or a fault", () => {
  const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.string({ maxLength: 20 }));
  const text = fc.tuple(fc.constantFrom("", "tls://", "x://"), host, fc.constantFrom("", ":53", "#a.example", ":0"));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        text.map((parts) => parts.join("")),
      ),
      (given) => {
        const parsed = parseUpstream(given);
        if (parsed.kind === "fault") return;
        assert.deepEqual(parseUpstream(upstreamText(parsed.upstream)), parsed);
      },
    ),
  );
});

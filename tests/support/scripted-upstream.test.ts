import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { exchangeTcp, exchangeUdp } from "./dns-client.ts";
import { decodeMessage } from "./dns-message.ts";
import { tableHandler, wireName } from "./scripted-replies.ts";
import { startScriptedUpstream } from "./scripted-upstream.ts";

const TABLE = `
  example.test. 60 SOA ns. admin. 1 2 3 4 30
  www.example.test. 60 CNAME host.example.test.
  host.example.test. 60 A 192.0.2.1
  *.wild.example.test. 60 A 192.0.2.2
`;

const bytesFor = (name: string, type: number) => encodeMessage(makeQuery(1, wireName(name), type, 0x100)).bytes;

test("a table answers over UDP and TCP at every address", async () => {
  await using upstream = await startScriptedUpstream({
    handler: tableHandler(TABLE),
    addresses: ["127.0.0.1", "127.0.0.2"],
  });
  for (const address of upstream.addresses) {
    for (const exchange of [exchangeUdp, exchangeTcp]) {
      const ask = async (name: string, type = 1) => {
        const bytes = await exchange({ port: upstream.port, address }, bytesFor(name, type));
        assert.ok(bytes !== undefined, name);
        const { rcode, answer, authority } = decodeMessage(bytes);
        return [rcode, answer.length, authority.length];
      };
      assert.deepEqual(await ask("WWW.example.test."), [0, 2, 0]);
      assert.deepEqual(await ask("a.b.wild.example.test."), [0, 1, 0]);
      assert.deepEqual(await ask("host.example.test.", 28), [0, 0, 1]);
      assert.deepEqual(await ask("none.example.test."), [3, 0, 1]);
      assert.deepEqual(await ask("elsewhere.test."), [5, 0, 0]);
    }
  }
  assert.equal(upstream.queries.length, 20);
  assert.equal(upstream.queries[0]?.name, "WWW.example.test.");
  assert.deepEqual(
    upstream.queries
      .slice(0, 20)
      .map(({ server, transport }) => `${server} ${transport}`)
      .filter((each, index, all) => all.indexOf(each) === index),
    ["127.0.0.1 udp", "127.0.0.1 tcp", "127.0.0.2 udp", "127.0.0.2 tcp"],
  );
});

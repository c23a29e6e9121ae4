/** What a serf 0.9.4 of Debian sent, with the key that it had; tests/cluster/serf-wire.test.ts speaks with a live one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCodec } from "./codec.ts";
import type { AliveMessage, Endpoint, PacketMessage } from "./messages.ts";

const codec = createCodec({ key: hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f") });

/** CRC, compressed, compound: two alive and two of serf's own. */
const GOSSIP_COMPRESSED = hex(
  "014ba0b8c422015f3e0479c888dd6af8dc113c367868acc9a5a14133c1e80891f9882462279393b4e8187fda1d1655339cab",
  "cd63f0249a66c635ff90435c4eddc0076a81f6f1e661b4d5aa3d7c0fcdcc338d61e5a49a9db219d4a72825d295c3c9759096",
  "69d2921e67b97e2827d4ebf83268883188842a1f56c156831204e7546aedd145289c838e9f54db97ca5ef23dc8ca06a569bb",
  "1a8359e8a76a063cc8d000755a4164dac50bc51208ea18ccbe5d6f029d4de8844d423218fa21feb50ec878ca65b645764291",
  "fb5b6d4d367116a73f66d84d7ad5ada04597f1ed9829a5a854dfd18646410351460e147e",
);
/** CRC, compound. */
const GOSSIP_PLAIN = hex(
  "01ba4a8c9ecd0bb32a6c8e409186fec99eb369a6b669d68dc7b6e79214428546d79b50a1aeb72d13c5235091135e31ac7e28",
  "e62e1f3516ce8651964464fd046ff24a971555440e5d5e70b99cb33ccbbea37d45c9ef98c97fd616ff39717ffa7227d7e32c",
  "01ecbda6d7dda78163d8520127eb94d65cf1149d619d0980dea0621c46210d978284710cd92acd864df815b389d9b8a712a2",
  "29a4c9f5c56bcb3f95ac0e45aea5b76cdb48a62a1c84b611bf4a28437d2b4a1fa969479dff1618c0de5313042eda5c1bca02",
  "2b84a4a48e50ae03cea3904b976f80ffc74d873f51f663266caf37283356b17c5e9a72962dacf749",
);
/** Alone and without a CRC: serf sends one with what it gossips only. */
const PING = hex(
  "0162468a23ead1e80e0617b0b2239e37ecef162d82213ce4c71baa660609f7d2cbf14db1f942d3957c7dd67dd133ffff274b",
  "422acecc7436942422f10aa9f027e456d0fc99b2fdf7054d0b8348b9b6ebbb1038606e29f69017c44e37be1e44ff97",
);
/** Compound; it leaves. */
const PING_AND_DEAD = hex(
  "01370da995698e9963b785e4a0b82fb751bac09aca9d0168de67ac10fd9c24d32450f6cf7f23ff483f0478f6680b728b1f40",
  "a23c9f6e29d8dd90e5ef833a2c61d31a10aea5f0c360b8cd27fb1ec24ff9ed3c271934708f94e19e187db054b23dbc4f7af6",
  "f55ba8c26d2795d2b851c143720b63501eefd8f3dd38846871d4f2c11348870ea7f8f4c989f3d6f7",
);
/** Of `serf join`. */
const PUSH_PULL_COMPRESSED = hex(
  "0a0000015a01df197b8389818bc85a70fcd50483a3ecd2cd29136b61d4888e676c91e4f086970ca4658a50db8ac2d7a08116",
  "1deaad10d6d4af448bc6d46ce68d6e3a8777b37b9aba4947e6c9d302ddb0a0fade5614716640bdae0fff4fa658bcde7567fe",
  "7dbb7a5cf4ed6309984610fcd9fc86b696efebe2121ac4858d5f06ef68888d973fb5e066029a7e26525a78f301b79b118bf0",
  "8fb5abb711fb376f267c66f3c68d8aad347bd49161d7dbc5aef0143d0365f0d756e08d751ed81941c4773e3bf7ae0a0265f5",
  "372717980355a7e108f005084368621ba53bc79c19aa7059b43f425bcc9efc51fcf2d94626395fc2bdec750ea8f4839b8d1d",
  "2a882dc80d8b77ab8d696824b53ec5905252e9f61958d9d1a3b6a55ab1210e8ea69a27a185878d58eed7d8dcd3db68fb97f8",
  "463e469e6e116da5d30347a8685cc08628d2fdbda0501acfbf3c58c053a9ea17fe0463b77638789c52907bdecfd955a4ae50",
  "b4",
);
/** An answer over TCP, whose payload is nil. */
const ACK_FRAME = hex(
  "0a0000002f015db338d03e9a6706ef515c80848255427059484f9ff3573915da76d32d94c9b7e8bc600c210dde6d949d63ed",
  "e744",
);

function hex(...lines: readonly string[]): Uint8Array {
  return Uint8Array.from(Buffer.from(lines.join(""), "hex"));
}

function at(port: number): Endpoint {
  return { address: Uint8Array.of(127, 0, 0, 1), port };
}

/** Tags as serf writes them: role=demo. */
const TAGS = hex("ff81a4726f6c65a464656d6f");

function alpha(port: number): Omit<AliveMessage, "type"> {
  return { incarnation: 1, node: "alpha", endpoint: at(port), meta: TAGS, versions: [1, 5, 2, 2, 5, 5] };
}

function puppet(port: number): Omit<AliveMessage, "type"> {
  return { incarnation: 1, node: "puppet", endpoint: at(port), meta: hex(), versions: [1, 5, 2, 2, 5, 4] };
}

/** serf's join intent of alpha, and its event "deploy" with "hello". */
const INTENT = hex("0182a54c54696d6501a44e6f6465a5616c706861");
const EVENT = hex("0384a24343c2a54c54696d6501a44e616d65a66465706c6f79a75061796c6f6164a568656c6c6f");

function gossip(alphaPort: number, puppetPort: number): readonly PacketMessage[] {
  return [
    { type: "alive", ...alpha(alphaPort) },
    { type: "alive", ...puppet(puppetPort) },
    { type: "user", payload: INTENT },
    { type: "user", payload: EVENT },
  ];
}

function pingFrom(port: number, sequence: number): PacketMessage {
  return { type: "ping", sequence, node: "puppet", source: { endpoint: at(port), node: "alpha" } };
}

const DEAD: PacketMessage = { type: "dead", incarnation: 1, node: "alpha", from: "alpha" };

const PACKETS: readonly (readonly [what: string, packet: Uint8Array, messages: readonly PacketMessage[]])[] = [
  ["compressed gossip", GOSSIP_COMPRESSED, gossip(44959, 37675)],
  ["plain gossip", GOSSIP_PLAIN, gossip(36587, 39335)],
  ["a ping", PING, [pingFrom(44959, 1)]],
  ["a ping with a leave", PING_AND_DEAD, [pingFrom(44959, 2), DEAD]],
];

for (const [what, packet, messages] of PACKETS) {
  test(`serf's packet: ${what}`, () => {
    assert.deepEqual(codec.unpackPacket(packet), { messages, malformed: 0 });
  });
}

test("serf's frame: an ack", () => {
  assert.deepEqual(codec.unpackFrame(ACK_FRAME), { message: { type: "ack", sequence: 7, payload: hex() } });
});

test("serf's frame: a compressed push/pull", () => {
  const unpacked = codec.unpackFrame(PUSH_PULL_COMPRESSED);
  assert.ok("message" in unpacked && unpacked.message.type === "push-pull");
  const { isJoin, nodes, userState } = unpacked.message;
  const members = [
    { ...puppet(37675), state: 0 },
    { ...alpha(44959), state: 0 },
  ];
  assert.deepEqual({ isJoin, nodes }, { isJoin: true, nodes: members });
  // serf's own state, for the most part an empty buffer of events.
  assert.equal(userState.length, 639);
  assert.match(Buffer.from(userState).toString("latin1"), /EventLTime.*deploy/s);
});

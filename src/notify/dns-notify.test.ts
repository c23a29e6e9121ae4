import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { settled } from "../../tests/support/notify-lab.ts";
import { createSimulatedClock } from "../../tests/support/simulated-clock.ts";
import { nameOf } from "../../tests/support/zone-lab.ts";
import { FLAG, OPCODE, RCODE, RRTYPE } from "../dns/codes.ts";
import { decodeMessage, encodeMessage, type Message } from "../dns/message.ts";
import { nameToText } from "../dns/name.ts";
import { readTsig, signResponse, type TsigKey } from "../dns/tsig.ts";
import { createDnsNotify, type DnsNotifyOptions, type DnsNotifySettings } from "./dns-notify.ts";
import {
  NOTIFY_ATTEMPTS_MAX,
  NOTIFY_BURST,
  NOTIFY_PENDING_MAX,
  NOTIFY_PUBLISHED_MS,
  NOTIFY_START_AT_ONCE,
  NOTIFY_START_ATTEMPTS_MAX,
  NOTIFY_START_PAUSE_MS,
  NOTIFY_START_PENDING_MAX,
} from "./dns-notify-limits.ts";

const KEY: TsigKey = { name: nameOf("notify."), algorithm: "hmac-sha256", secret: new Uint8Array(32).fill(7) };
const TARGET = { host: "192.0.2.1", port: 53 };

type Sent = { readonly bytes: Uint8Array; readonly address: string; readonly port: number; readonly atMs: number };

function messageOf(bytes: Uint8Array): Message {
  const decoded = decodeMessage(bytes);
  assert.ok(decoded.kind === "message");
  return decoded.message;
}

function lab(given: Partial<DnsNotifySettings> = {}, options: Partial<DnsNotifyOptions> = {}) {
  const clock = createSimulatedClock(1_800_000_000_000, 0);
  const settings = { targets: [TARGET], debounceMs: 2_000, key: "none" as const, ...given };
  const state = { settings: settings as DnsNotifySettings, serial: 1 };
  const sent: Sent[] = [];
  const lines: string[] = [];
  let lastId = 0;
  const notify = createDnsNotify({
    settings: () => state.settings,
    soaOf: (zone) => {
      const rdata = Buffer.concat([nameOf("ns."), nameOf("h."), new Uint8Array(20)]);
      rdata.writeUInt32BE(state.serial, rdata.length - 20);
      return { zone: nameOf(zone), ttl: 60, rdata };
    },
    published: async () => {},
    onAnnounced: () => {},
    send: (bytes, address, port) => sent.push({ bytes, address, port, atMs: clock.now() }),
    resolveHost: async (host) => [host],
    times: { now: clock.now, wallMs: clock.wallMs, after: clock.after },
    randomId: () => ++lastId & 0xffff,
    log: (_level, message, fields) => lines.push(`${message} ${fields?.target}`),
    ...options,
  });
  const pass = async (ms: number, stepMs = 100) => {
    await settled();
    for (let left = ms; left > 0; left -= stepMs) {
      await clock.pass(Math.min(left, stepMs));
      await settled();
    }
  };
  const answer = (index: number, rcode: number = RCODE.NOERROR, from = TARGET.host) => {
    const { bytes, port } = sent[index] ?? assert.fail();
    const { id, questions } = messageOf(bytes);
    const none = { answers: [], authorities: [], additionals: [], edns: undefined };
    const flags = FLAG.QR | FLAG.AA;
    notify.heard(encodeMessage({ id, flags, opcode: OPCODE.NOTIFY, rcode, questions, ...none }).bytes, from, port);
  };
  const serials = () =>
    sent.map(({ bytes }) => {
      const rdata = Buffer.from(messageOf(bytes).answers[0]?.rdata ?? []);
      return rdata.readUInt32BE(rdata.length - 20);
    });
  return { notify, state, sent, lines, pass, answer, serials, clock };
}

test("a change is announced once, after the debounce time, with the SOA in the answer section", async () => {
  const { notify, sent, pass, answer } = lab();
  notify.changed("corp.test.");
  await pass(1_900);
  notify.changed("corp.test.");
  assert.equal(sent.length, 0);
  await pass(100);
  const [first] = sent;
  const message = messageOf(first?.bytes ?? new Uint8Array(0));
  assert.deepEqual([first?.address, first?.port, first?.atMs], [TARGET.host, 53, 2_000]);
  assert.deepEqual([message.opcode, message.flags, message.rcode], [OPCODE.NOTIFY, FLAG.AA, RCODE.NOERROR]);
  assert.deepEqual(
    [...message.questions, ...message.answers].map(({ name, type }) => [nameToText(name), type]),
    [
      ["corp.test.", RRTYPE.SOA],
      ["corp.test.", RRTYPE.SOA],
    ],
  );
  answer(0);
  await pass(600_000, 10_000);
  assert.equal(sent.length, 1);
  assert.deepEqual(notify.stats(), { sent: 1, answered: 1, failed: 0, pending: 0 });
});

test("constant writes do not put an announcement off, and a later serial takes the place of the earlier one", async () => {
  const { notify, state, pass, serials } = lab();
  for (let serial = 1; serial <= 50; serial++) {
    state.serial = serial;
    notify.changed("corp.test.");
    await pass(100);
  }
  assert.deepEqual(serials(), [20, 30, 40, 50]);
  assert.equal(notify.stats().pending, 1);
});

test("a target that does not answer is told again, ever less often, and given up in the end", async () => {
  const { notify, sent, lines, pass } = lab({ debounceMs: 0 });
  notify.changed("corp.test.");
  await pass(100);
  await pass(8_000_000, 1_000);
  const pauses = sent.slice(1).map(({ atMs }, index) => Math.round((atMs - (sent[index]?.atMs ?? 0)) / 1_000));
  assert.deepEqual(pauses.slice(0, 10), [1, 2, 4, 8, 16, 32, 60, 120, 300, 300]);
  assert.equal(sent.length, NOTIFY_ATTEMPTS_MAX);
  assert.deepEqual(notify.stats(), { sent: NOTIFY_ATTEMPTS_MAX, answered: 0, failed: 1, pending: 0 });
  assert.deepEqual(lines, ["a secondary does not take NOTIFY: no answer 192.0.2.1:53"]);
});

test("only an answer to that question from that address is one; SERVFAIL is none, and a refusal is the last word", async () => {
  const { notify, sent, lines, pass, answer } = lab({ debounceMs: 0 });
  notify.changed("corp.test.");
  await pass(100);
  answer(0, RCODE.NOERROR, "192.0.2.2");
  notify.heard(sent[0]?.bytes ?? new Uint8Array(0), TARGET.host, 53);
  notify.heard(Uint8Array.of(0, 1), TARGET.host, 53);
  answer(0, RCODE.SERVFAIL);
  assert.equal(notify.stats().pending, 1);
  await pass(1_000);
  answer(1, RCODE.NOTAUTH);
  assert.deepEqual(notify.stats(), { sent: 2, answered: 0, failed: 1, pending: 0 });
  assert.equal(lines.length, 1);
});

test("a signed announcement is answered by nothing but what that key has signed", async () => {
  const { notify, sent, pass, answer, clock } = lab({ debounceMs: 0, key: KEY });
  notify.changed("corp.test.");
  await pass(100);
  const nowSeconds = Math.floor(clock.wallMs() / 1_000);
  const { bytes } = sent[0] ?? assert.fail();
  const verified = readTsig(bytes, () => KEY, nowSeconds);
  assert.ok(verified.kind === "verified");
  answer(0);
  assert.equal(notify.stats().pending, 1);
  const { id, questions } = messageOf(bytes);
  const none = { answers: [], authorities: [], additionals: [], edns: undefined };
  const plain = encodeMessage({ id, flags: FLAG.QR, opcode: OPCODE.NOTIFY, rcode: 0, questions, ...none }).bytes;
  const other: TsigKey = { ...KEY, secret: new Uint8Array(32) };
  const signed = (key: TsigKey) => signResponse(key, verified.mac, () => nowSeconds).sign(plain);
  notify.heard(signed(other), TARGET.host, 53);
  assert.equal(notify.stats().pending, 1);
  notify.heard(signed(KEY), TARGET.host, 53);
  assert.deepEqual(notify.stats(), { sent: 1, answered: 1, failed: 0, pending: 0 });
});

test("without the key that is to sign it, nothing is sent", async () => {
  const { notify, sent, lines, pass } = lab({ debounceMs: 0, key: "missing" });
  notify.changed("corp.test.");
  await pass(5_000);
  assert.equal(sent.length, 0);
  assert.match(lines.join(), /the TSIG key for NOTIFY is not there/);
});

test("a target that leaves the settings is not told any more", async () => {
  const { notify, state, sent, pass } = lab({ debounceMs: 0 });
  notify.changed("corp.test.");
  await pass(100);
  state.settings = { ...state.settings, targets: [] };
  await pass(10_000);
  assert.deepEqual([sent.length, notify.stats().pending], [1, 0]);
  notify.changed("corp.test.");
  await pass(10_000);
  assert.equal(sent.length, 1);
});

test("each attempt goes to the next address of a host, and a host that is not found is tried again", async () => {
  const answers = [["192.0.2.1", "2001:db8::1"], ["192.0.2.1", "2001:db8::1"], "not found", ["192.0.2.9"]] as const;
  let asked = 0;
  const { notify, sent, pass } = lab(
    { debounceMs: 0, targets: [{ host: "ns.example", port: 5353 }] },
    {
      resolveHost: async () => {
        const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
        if (typeof answer === "string") throw new Error(answer);
        return answer;
      },
    },
  );
  notify.changed("corp.test.");
  await pass(10_000);
  assert.deepEqual(
    sent.map(({ address, port }) => `${address} ${port}`),
    ["192.0.2.1 5353", "2001:db8::1 5353", "192.0.2.9 5353"],
  );
});

test("nothing is announced before this node answers it, within a time", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const waits = [promise, new Promise<void>(() => {})];
  const { notify, sent, pass } = lab({ debounceMs: 0 }, { published: () => waits.shift() ?? Promise.resolve() });
  notify.changed("first.test.");
  await pass(NOTIFY_PUBLISHED_MS / 2, 1_000);
  assert.equal(sent.length, 0);
  resolve();
  await pass(100);
  assert.equal(sent.length, 1);
  notify.changed("second.test.");
  await pass(NOTIFY_PUBLISHED_MS - 100, 1_000);
  const before = sent.filter(
    ({ bytes }) => nameToText(messageOf(bytes).questions[0]?.name ?? bytes) === "second.test.",
  );
  assert.equal(before.length, 0);
  await pass(200);
  const after = sent.filter(({ bytes }) => nameToText(messageOf(bytes).questions[0]?.name ?? bytes) === "second.test.");
  assert.equal(after.length, 1);
});

test("what waits is bounded, and what is sent at a stretch too", async () => {
  const targets = Array.from({ length: 50 }, (_, index) => ({ host: `192.0.2.${index}`, port: 53 }));
  const { notify, sent, pass } = lab({ debounceMs: 0, targets });
  for (let zone = 0; zone < NOTIFY_PENDING_MAX / 50 + 2; zone++) notify.changed(`zone${zone}.test.`);
  await pass(1, 1);
  assert.ok(sent.length <= 2 * NOTIFY_BURST, `${sent.length}`);
  assert.equal(notify.stats().pending, NOTIFY_PENDING_MAX);
  assert.equal(notify.stats().failed, 100);
  notify[Symbol.dispose]();
  const before = sent.length;
  await pass(10_000, 1_000);
  assert.equal(sent.length, before);
});

test("no datagram throws", async () => {
  const { notify, pass } = lab({ debounceMs: 0, key: KEY });
  notify.changed("corp.test.");
  await pass(100);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (tail) => {
      notify.heard(Uint8Array.of(0, 1, ...tail), TARGET.host, 53);
      notify.heard(tail, TARGET.host, 53);
    }),
  );
  assert.equal(notify.stats().pending, 1);
});

const zonesOf = (count: number) => Array.from({ length: count }, (_, index) => `zone-${index}.test.`);

function zoneNamesOf(sent: readonly Sent[]): readonly string[] {
  return sent.map(({ bytes }) => nameToText(messageOf(bytes).questions[0]?.name ?? new Uint8Array(1)));
}

test("at the start each zone is announced once to each target, so many in a while", async () => {
  const targets = [TARGET, { host: "192.0.2.2", port: 53 }];
  const { notify, sent, pass, answer } = lab({ targets });
  const zones = zonesOf(NOTIFY_START_AT_ONCE);
  void notify.announceAll(zones.values());
  await pass(NOTIFY_START_PAUSE_MS / 2);
  assert.equal(sent.length, NOTIFY_START_AT_ONCE);
  const answerAll = () => {
    for (const [index, { address }] of sent.entries()) answer(index, RCODE.NOERROR, address);
  };
  answerAll();
  await pass(NOTIFY_START_PAUSE_MS);
  assert.equal(sent.length, 2 * NOTIFY_START_AT_ONCE);
  answerAll();
  await pass(600_000, 10_000);
  assert.deepEqual(
    zoneNamesOf(sent),
    zones.flatMap((zone) => [zone, zone]),
  );
  assert.equal(sent.filter(({ address }) => address === TARGET.host).length, zones.length);
  assert.deepEqual(notify.stats(), { sent: sent.length, answered: sent.length, failed: 0, pending: 0 });
});

test("a target that is away hears of the start a few times, is logged, and leaves room for changes", async () => {
  const { notify, sent, lines, pass } = lab({ debounceMs: 0 });
  void notify.announceAll(zonesOf(2 * NOTIFY_START_PENDING_MAX).values());
  let most = 0;
  for (let second = 0; second < 120; second++) {
    await pass(1_000, 1_000);
    most = Math.max(most, notify.stats().pending);
  }
  assert.ok(most <= NOTIFY_START_PENDING_MAX, `${most}`);
  assert.equal(sent.length, 2 * NOTIFY_START_PENDING_MAX * NOTIFY_START_ATTEMPTS_MAX);
  assert.deepEqual(lines, ["a secondary does not take NOTIFY: no answer 192.0.2.1:53"]);
  assert.equal(notify.stats().pending, 0);
});

test("at the start nobody is told of a zone that changes or that does not answer, nor anything where there is no target", async () => {
  const rdata = Buffer.concat([nameOf("ns."), nameOf("h."), new Uint8Array(20)]);
  const soaOf = (zone: string) => (zone === "zone-1.test." ? undefined : { zone: nameOf(zone), ttl: 60, rdata });
  const { notify, sent, pass, answer } = lab({}, { soaOf });
  notify.changed("zone-0.test.");
  void notify.announceAll(zonesOf(3).values());
  await pass(100);
  assert.deepEqual(zoneNamesOf(sent), ["zone-2.test."]);
  answer(0);
  await pass(2_000);
  assert.deepEqual(zoneNamesOf(sent), ["zone-2.test.", "zone-0.test."]);
  const nobody = lab({ targets: [] });
  void nobody.notify.announceAll(zonesOf(3).values());
  await nobody.pass(10_000, 1_000);
  assert.deepEqual(nobody.sent, []);
  const ended = lab();
  void ended.notify.announceAll(zonesOf(NOTIFY_START_AT_ONCE + 1).values());
  await ended.pass(100);
  ended.notify[Symbol.dispose]();
  await ended.pass(10_000, 1_000);
  assert.equal(ended.sent.length, NOTIFY_START_AT_ONCE);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../../tests/support/wait.ts";
import type { Identity } from "../base/tls.ts";
import { type Address, addressToText } from "./address.ts";
import { createSecureSwitch } from "./secure-switch.ts";

const ONE: Identity = { cert: "one", key: "one" };
const TWO: Identity = { cert: "two", key: "two" };
const NAMES = ["dot", "doh"];

const at = (port: number): Address => ({ bytes: Uint8Array.of(127, 0, 0, 1), port });

/** A switch whose servers only say what is done to them; addresses in `taken` cannot be bound. */
function openLab(taken = new Set<number>()) {
  const done: string[] = [];
  const lines: string[] = [];
  const opening: (() => void)[] = [];
  let isSlow = false;
  const it = createSecureSwitch({
    open: async (kind, address, identity) => {
      const name = `${NAMES[kind]} ${address.port}`;
      if (isSlow) await new Promise<void>((resolve) => opening.push(resolve));
      if (taken.has(address.port)) throw new Error("in use");
      done.push(`${name} open ${identity.cert}`);
      return {
        address,
        setIdentity: ({ cert }) => void done.push(`${name} ${cert}`),
        retire: () => void done.push(`${name} retired`),
      };
    },
    retryMs: 5,
    log: (level, message) => void lines.push(`${level} ${message}`),
  });
  const slow = (yes: boolean) => {
    isSlow = yes;
  };
  const expect = async (...wanted: readonly string[]) => {
    await waitFor(wanted.join(), 5_000, () => done.length >= wanted.length);
    assert.deepEqual(done.splice(0), wanted);
  };
  /** What is wished, and whether it has become so. */
  const apply = (settings: Parameters<typeof it.apply>[0]) => {
    const wish = { isSettled: false };
    void it.apply(settings).then(() => {
      wish.isSettled = true;
    });
    return wish;
  };
  return { ...it, apply, expect, lines, taken, opening, slow };
}

test("nothing listens before there is a certificate", async () => {
  const lab = openLab();
  lab.apply({ dot: at(1), doh: at(2) });
  await lab.expect();
  lab.setIdentity(ONE);
  await lab.expect("dot 1 open one", "doh 2 open one");
});

test("each is switched and moved for itself", async () => {
  const lab = openLab();
  lab.setIdentity(ONE);
  lab.apply({ dot: at(1), doh: undefined });
  await lab.expect("dot 1 open one");
  lab.apply({ dot: at(1), doh: at(2) });
  await lab.expect("doh 2 open one");
  lab.apply({ dot: at(3), doh: at(2) });
  await lab.expect("dot 1 retired", "dot 3 open one");
  lab.setIdentity(TWO);
  await lab.expect("dot 3 two", "doh 2 two");
  lab.apply({ dot: undefined, doh: at(2) });
  await lab.expect("dot 3 retired");
  lab.close();
  await lab.expect("doh 2 retired");
});

test("an address that cannot be bound is told once and tried until it can", async () => {
  const lab = openLab(new Set([1]));
  lab.setIdentity(ONE);
  lab.apply({ dot: at(1), doh: undefined });
  const complaint = `error DNS over TLS cannot listen on ${addressToText(at(1))}: in use`;
  await waitFor("the complaint", 5_000, () => lab.lines.includes(complaint));
  lab.taken.clear();
  await lab.expect("dot 1 open one");
  assert.equal(lab.lines.filter((line) => line === complaint).length, 1);
});

test("one that cannot be bound is given up for another", async () => {
  const lab = openLab(new Set([1]));
  lab.setIdentity(ONE);
  lab.apply({ dot: at(1), doh: undefined });
  lab.apply({ dot: at(2), doh: undefined });
  await lab.expect("dot 2 open one");
});

test("what is wanted while a listener opens is done when it has", async () => {
  const lab = openLab();
  lab.slow(true);
  lab.setIdentity(ONE);
  lab.apply({ dot: at(1), doh: undefined });
  lab.setIdentity(TWO);
  lab.apply({ dot: at(2), doh: undefined });
  lab.slow(false);
  for (const open of lab.opening.splice(0)) open();
  await lab.expect("dot 1 open one", "dot 1 two", "dot 1 retired", "dot 2 open two");
  lab.slow(true);
  lab.apply({ dot: at(3), doh: undefined });
  lab.apply({ dot: undefined, doh: undefined });
  for (const open of lab.opening.splice(0)) open();
  await lab.expect("dot 2 retired", "dot 3 open two", "dot 3 retired");
});

test("a wish is settled when it is so, or cannot be for now, and with it those before", async () => {
  const lab = openLab(new Set([9]));
  const settles = (wish: { readonly isSettled: boolean }) => waitFor("it is settled", 5_000, () => wish.isSettled);
  await settles(lab.apply({ dot: at(1), doh: at(2) }));
  lab.setIdentity(ONE);
  await lab.expect("dot 1 open one", "doh 2 open one");
  await settles(lab.apply({ dot: at(1), doh: at(2) }));
  await settles(lab.apply({ dot: at(9), doh: undefined }));
  await lab.expect("dot 1 retired", "doh 2 retired");

  lab.slow(true);
  const first = lab.apply({ dot: at(3), doh: undefined });
  const second = lab.apply({ dot: at(4), doh: undefined });
  await waitFor("it opens", 5_000, () => lab.opening.length > 0);
  lab.opening.splice(0)[0]?.();
  await lab.expect("dot 3 open one", "dot 3 retired");
  await waitFor("the other opens", 5_000, () => lab.opening.length > 0);
  assert.deepEqual([first.isSettled, second.isSettled], [false, false]);
  lab.opening.splice(0)[0]?.();
  await Promise.all([settles(first), settles(second)]);
  await lab.expect("dot 4 open one");
});

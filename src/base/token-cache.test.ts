import assert from "node:assert/strict";
import test from "node:test";
import { createTokenCache, type Token } from "./token-cache.ts";

/** A cache with its clock, and a service that counts how often it is asked. */
function lab(lifeMs = 3_600_000, tokensMax?: number) {
  const world = { nowMs: 1_000_000, asked: 0, isDown: false };
  const cache = createTokenCache(() => world.nowMs, tokensMax);
  const fetch = async (): Promise<Token> => {
    world.asked++;
    if (world.isDown) throw new Error("down");
    return { text: `token-${world.asked}`, expiresMs: world.nowMs + lifeMs };
  };
  return { world, cache, get: (key = "a") => cache.get(key, fetch) };
}

test("one fetch serves all who wait, and all who come until shortly before the token expires", async () => {
  const { world, get } = lab();
  const first = await Promise.all(Array.from({ length: 5_000 }, () => get()));
  assert.deepEqual(new Set(first), new Set(["token-1"]));
  world.nowMs += 3_539_999;
  assert.equal(await get(), "token-1");
  world.nowMs += 1;
  assert.equal(await get(), "token-2");
});

test("a short life has a short margin", async () => {
  const { world, get } = lab(10_000);
  await get();
  world.nowMs += 8_999;
  assert.equal(await get(), "token-1");
  world.nowMs += 1;
  assert.equal(await get(), "token-2");
});

test("a failure is kept, twice as long each time up to a limit, and forgotten with the first success", async () => {
  const { world, get } = lab();
  world.isDown = true;
  for (const keptMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const { asked } = world;
    await assert.rejects(get(), /down/);
    world.nowMs += keptMs - 1;
    await Promise.all(Array.from({ length: 100 }, () => assert.rejects(get(), /down/)));
    assert.equal(world.asked, asked + 1, `kept for ${keptMs}`);
    world.nowMs += 1;
  }
  world.isDown = false;
  await get();
  world.isDown = true;
  world.nowMs += 3_600_000;
  await assert.rejects(get(), /down/);
  world.isDown = false;
  world.nowMs += 1_000;
  await get();
});

test("what is dropped is fetched anew, except where it is young, failed or still being fetched", async () => {
  const { world, cache, get } = lab();
  const waiting = get();
  cache.drop("a");
  await waiting;
  world.nowMs += 14_999;
  cache.drop("a", 15_000);
  cache.drop("other");
  assert.equal(await get(), "token-1");
  world.nowMs += 1;
  cache.drop("a", 15_000);
  world.isDown = true;
  await assert.rejects(get());
  cache.drop("a");
  await assert.rejects(get());
  assert.equal(world.asked, 2);
});

test("so many tokens and no more: the one fetched the longest ago goes first", async () => {
  const { world, get } = lab(3_600_000, 2);
  await get("a");
  await get("b");
  await get("c");
  await get("b");
  assert.equal(world.asked, 3);
  await get("a");
  assert.equal(world.asked, 4);
});

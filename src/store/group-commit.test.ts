import assert from "node:assert/strict";
import { test } from "node:test";
import { makeGroupCommit } from "./group-commit.ts";

/** Groups whose commits the test lets end, on a disk that does one at a time. */
function makeWorld() {
  const begun: string[] = [];
  const told: string[] = [];
  let open: string[] = [];
  let end: { readonly resolve: () => void; readonly reject: (thrown: unknown) => void } | undefined;
  let mayRunBeside = true;
  const group = makeGroupCommit({
    begin: () => undefined,
    commit: () => {
      assert.equal(end, undefined, "two commits at once");
      begun.push(open.join(" "));
      open = [];
      return new Promise((resolve, reject) => {
        end = { resolve, reject };
      });
    },
    mayRunBeside: () => mayRunBeside,
  });
  const settled = (act: (ending: NonNullable<typeof end>) => void) => {
    assert.ok(end, "no commit is on its way");
    const ending = end;
    end = undefined;
    act(ending);
    return turns();
  };
  return {
    begun,
    told,
    group,
    ran: () => open.join(" "),
    refuseBeside: () => {
      mayRunBeside = false;
    },
    write: (name: string, work: () => void | Promise<void> = () => undefined) => {
      const run = () => {
        open.push(name);
        return work();
      };
      void group.run(run).then(
        () => told.push(name),
        (thrown: Error) => told.push(`${name}: ${thrown.message}`),
      );
    },
    succeeds: () => settled(({ resolve }) => resolve()),
    fails: (message: string) => settled(({ reject }) => reject(new Error(message))),
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Lets the event loop turn as often as anything here may need. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await nextTurn();
}

test("who writes in one turn shares a commit; who comes later runs beside it and is told after the next one", async () => {
  const { begun, told, ran, write, succeeds } = makeWorld();
  write("a");
  write("b");
  await turns();
  assert.deepEqual([begun, told], [["a b"], []]);
  write("c");
  await turns();
  write("d");
  await turns();
  assert.deepEqual([begun, ran(), told], [["a b"], "c d", []]);
  await succeeds();
  assert.deepEqual(
    [begun, told],
    [
      ["a b", "c d"],
      ["a", "b"],
    ],
  );
  await succeeds();
  assert.deepEqual(
    [begun, told],
    [
      ["a b", "c d"],
      ["a", "b", "c", "d"],
    ],
  );
});

test("the next commit is on its way before anybody is told of the one before it", async () => {
  const { begun, group, write, succeeds } = makeWorld();
  let begunWhenTold: readonly string[] = [];
  void group
    .run(() => undefined)
    .then(() => {
      begunWhenTold = [...begun];
    });
  await turns();
  write("next");
  await turns();
  await succeeds();
  assert.deepEqual(begunWhenTold, ["", "next"]);
});

test("what throws is told at once, and its group goes on without it", async () => {
  const { begun, told, write, succeeds } = makeWorld();
  write("a", () => {
    throw new Error("no");
  });
  write("b", async () => {
    await nextTurn();
    throw new Error("not later either");
  });
  write("c");
  await turns();
  assert.deepEqual(told, ["a: no", "b: not later either"]);
  assert.deepEqual(begun, ["a b c"]);
  await succeeds();
  assert.deepEqual(told.slice(2), ["c"]);
});

test("a commit that fails fails its own members; each later group has an end of its own", async () => {
  const { told, write, succeeds, fails } = makeWorld();
  write("a");
  await turns();
  write("b");
  await turns();
  await fails("the disk");
  assert.deepEqual(told, ["a: the disk"]);
  await fails("the disk still");
  write("c");
  await turns();
  await succeeds();
  assert.deepEqual(told, ["a: the disk", "b: the disk still", "c"]);
});

test("beside a group that is too large nothing runs until it is on the disk", async () => {
  const { begun, ran, write, succeeds, refuseBeside } = makeWorld();
  refuseBeside();
  write("large");
  await turns();
  write("other");
  await turns();
  assert.deepEqual([begun, ran()], [["large"], ""]);
  await succeeds();
  assert.deepEqual(begun, ["large", "other"]);
  await succeeds();
});

test("a group is bounded, however many wait", async () => {
  const { begun, told, write, succeeds } = makeWorld();
  for (let index = 0; index < 200; index++) write(String(index));
  await turns();
  while (told.length < 200) await succeeds();
  assert.deepEqual(
    begun.map((members) => members.split(" ").length),
    [64, 64, 64, 8],
  );
  assert.deepEqual(
    told,
    Array.from({ length: 200 }, (_, index) => String(index)),
  );
});

test("idle waits for what runs and for what is on its way", async () => {
  const { group, told, write, succeeds } = makeWorld();
  await group.idle();
  write("a");
  await turns();
  write("b");
  let isIdle = false;
  void group.idle().then(() => {
    isIdle = true;
  });
  await turns();
  await succeeds();
  assert.deepEqual([isIdle, told], [false, ["a"]]);
  await succeeds();
  assert.deepEqual([isIdle, told], [true, ["a", "b"]]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { makeGroupCommit } from "./group-commit.ts";

/** Groups whose commits the test lets end, on a disk that does one at a time. */
function makeWorld() {
  const begun: string[] = [];
  const begunLong: string[] = [];
  const told: string[] = [];
  const endings = (name: string) =>
    [() => void told.push(name), (thrown: Error) => void told.push(`${name}: ${thrown.message}`)] as const;
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
    write: (name: string, work: () => undefined | "later" = () => undefined) => {
      const run = () => {
        const result = work();
        if (result === undefined) open.push(name);
        return result;
      };
      void group.run(run).then(...endings(name));
    },
    /** Ends when the test says so. */
    writeLong: (name: string) => {
      const ending: { resolve: () => void; reject: (thrown: unknown) => void } = {
        resolve: () => undefined,
        reject: () => undefined,
      };
      const run = async () => {
        begunLong.push(name);
        await new Promise<void>((resolve, reject) => {
          Object.assign(ending, { resolve, reject });
        });
        open.push(name);
      };
      void group.runLong(run).then(...endings(name));
      return {
        ends: () => {
          ending.resolve();
          return turns();
        },
        throws: (message: string) => {
          ending.reject(new Error(message));
          return turns();
        },
      };
    },
    begunLong,
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
  const { begun, told, write, writeLong, succeeds } = makeWorld();
  write("a", () => {
    throw new Error("no");
  });
  const long = writeLong("b");
  write("c");
  await turns();
  assert.deepEqual(told, ["a: no"]);
  await long.throws("not later either");
  assert.deepEqual([begun, told], [["c"], ["a: no", "b: not later either"]]);
  await succeeds();
  assert.deepEqual(told.slice(2), ["c"]);
});

test("while a long one is under way others run, reach the disk and are told; it goes with the group that is open at its end", async () => {
  const { begun, told, ran, write, writeLong, succeeds } = makeWorld();
  const long = writeLong("long");
  write("a");
  await turns();
  assert.deepEqual(begun, ["a"]);
  await succeeds();
  assert.deepEqual(told, ["a"]);
  write("b");
  await turns();
  write("c");
  await turns();
  await long.ends();
  assert.deepEqual([begun, ran()], [["a", "b"], "c long"]);
  await succeeds();
  await succeeds();
  assert.deepEqual(
    [begun, told],
    [
      ["a", "b", "c long"],
      ["a", "b", "c", "long"],
    ],
  );
});

test("what was taken back beside a long one runs behind it, in its place, and once", async () => {
  const { begun, told, write, writeLong, succeeds } = makeWorld();
  const runs: string[] = [];
  let isUnderWay = true;
  const meeting = (name: string) => () => {
    runs.push(name);
    return isUnderWay ? "later" : undefined;
  };
  const long = writeLong("long");
  for (const name of ["a", "b"]) write(name, meeting(name));
  write("other");
  await turns();
  const second = writeLong("second");
  await succeeds();
  assert.deepEqual([begun, told, runs], [["other"], ["other"], ["a", "b"]]);
  isUnderWay = false;
  await long.ends();
  assert.deepEqual(runs, ["a", "b", "a", "b"]);
  await succeeds();
  await succeeds();
  assert.deepEqual(
    [begun, told],
    [
      ["other", "long", "a b"],
      ["other", "long", "a", "b"],
    ],
  );
  await second.ends();
  await succeeds();
  assert.deepEqual(told.at(-1), "second");
});

test("long ones run one at a time, in their order", async () => {
  const { begunLong, writeLong, succeeds } = makeWorld();
  const longs = ["a", "b"].map((name) => writeLong(name));
  await turns();
  assert.deepEqual(begunLong, ["a"]);
  await longs[0]?.ends();
  assert.deepEqual(begunLong, ["a", "b"]);
  await longs[1]?.throws("no");
  await succeeds();
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

test("beside a group that is too large no long one begins until it is on the disk", async () => {
  const { begun, begunLong, ran, write, writeLong, succeeds, refuseBeside } = makeWorld();
  refuseBeside();
  write("large");
  await turns();
  const long = writeLong("long");
  write("other");
  await turns();
  assert.deepEqual([begun, ran(), begunLong], [["large"], "other", []]);
  await succeeds();
  await succeeds();
  assert.deepEqual([begun, begunLong], [["large", "other"], ["long"]]);
  await long.ends();
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

/** Who may come in on another node than the one that wrote it down: it reads the store that both share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedWith } from "../../tests/support/commands.ts";
import { passwordOf, SIGNING_KEY, startSignInApi } from "../../tests/support/sign-in.ts";
import { temporaryStore } from "../../tests/support/store.ts";
import { authenticate } from "./authenticate.ts";
import { createSignIn } from "./sign-in.ts";

type Scope = "issuing-node" | "cluster";

/** The API of one node with its admin, and another node that has the same cluster key and what it is sent. */
async function twoNodes(scope: Scope) {
  const one = await startSignInApi(scope);
  const other = await temporaryStore({ nodeId: "other-node" });
  const signIn = createSignIn({ context: other.context, signingKey: SIGNING_KEY, serviceAccountScope: scope });
  const send = async (from: typeof other.store, to: typeof other.store) => {
    await to.applyRemote(from.rawItems({ limit: 1_000 }).items);
  };
  const source = one.nodeStore;
  return {
    one,
    other,
    /** What one node has comes to the other, and back. */
    forth: () => send(source, other.store),
    back: () => send(other.store, source),
    as: (token: string) => authenticate(signIn, { kind: "bearer", token }),
    [Symbol.asyncDispose]: async () => {
      signIn.close();
      await one[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    },
  };
}

test("a session holds on every node, and ends on every node with its logout, its user or the password", async () => {
  await using nodes = await twoNodes("issuing-node");
  const { one, other, forth, back, as } = nodes;
  for (const name of ["ada", "bob", "cyd"]) await one.makeUser(name, "editor");
  const [ada, bob, cyd] = [await one.tokensOf("ada"), await one.tokensOf("bob"), await one.tokensOf("cyd")];
  await refusedWith("not_authenticated", as(ada.access));
  await forth();
  for (const { access } of [ada, bob, cyd]) assert.equal((await as(access)).role, "editor");
  await one.ask("POST", "/auth/logout", { as: ada.access, json: { refresh_token: ada.refresh } });
  const bobs = other.store.get("user", ["bob"]) ?? assert.fail();
  // On the other node a user is disabled, and another gets another role.
  await other.store.write((tx) => {
    tx.put("user", { ...bobs.body, enabled: false });
    const cyds = tx.get("user", ["cyd"]) ?? assert.fail();
    tx.put("user", { ...cyds.body, role: "readonly" });
  });
  await forth();
  await refusedWith("not_authenticated", as(ada.access));
  await refusedWith("not_authenticated", as(bob.access));
  assert.equal((await as(cyd.access)).role, "readonly");
  // It may, only not this.
  assert.equal(await one.status(bob.access), 403);
  await back();
  assert.equal(await one.status(bob.access), 401);
  assert.equal((await one.login("bob", passwordOf("bob"))).status, 401);
});

for (const scope of ["issuing-node", "cluster"] as const) {
  test(`a service account is known on every node; with scope ${scope} its token is taken ${scope === "cluster" ? "on all" : "by its issuer only, whom the refusal names"}`, async () => {
    await using nodes = await twoNodes(scope);
    const { one, other, forth, as } = nodes;
    const { access } = await one.tokensOf("admin");
    const made = await one.ask("POST", "/service-accounts", { as: access, json: { name: "robot", role: "editor" } });
    assert.equal(made.status, 200, made.text);
    await forth();
    assert.equal(other.store.count("service-account"), 1);
    if (scope === "cluster") {
      assert.equal((await as(made.body.token)).name, "robot");
      await one.ask("POST", `/service-accounts/${made.body.id}/revoke`, { as: access });
      await forth();
      await refusedWith("not_authenticated", as(made.body.token));
    } else {
      const refusal = await refusedWith("not_authenticated", as(made.body.token));
      assert.deepEqual([refusal.members.issuing_node, /test-node/.test(refusal.message)], ["test-node", true]);
    }
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorError } from "../base/errors.ts";
import { DEFAULT_USER_ID, scriptUser } from "./user.ts";

const PASSWD = `root:x:0:0:root:/root:/bin/bash
checks:x:998:997::/nonexistent:/usr/sbin/nologin
admin:x:1000:0::/home/admin:/bin/sh
broken
toor:x:0:5::/:/bin/sh
`;

for (const [text, userId, groupId] of [
  ["checks", 998, 997],
  ["998", 998, 997],
  ["61000", 61_000, 61_000],
  ["", DEFAULT_USER_ID, DEFAULT_USER_ID],
] as const) {
  test(`scripts run as "${text}"`, () => assert.deepEqual(scriptUser(text, PASSWD), { userId, groupId }));
}

for (const [text, expected] of [
  ["root", /must not run as root/],
  ["0", /must not run as root/],
  ["000", /must not run as root/],
  ["toor", /must not run as root/],
  ["admin", /nor in its group/],
  ["nemo", /no user "nemo"/],
  ["-1", /no user "-1"/],
  ["4294967295", /not the number of a user/],
  ["broken", /no user "broken"/],
] as const) {
  test(`scripts do not run as "${text}"`, () => {
    assert.throws(
      () => scriptUser(text, PASSWD),
      (error) => error instanceof OperatorError && expected.test(error.message),
    );
  });
}

test("the default is refused where it is somebody's", () => {
  const passwd = `${PASSWD}taken:x:${DEFAULT_USER_ID}:5::/:/bin/sh\n`;
  assert.throws(() => scriptUser("", passwd), /is taken on this machine/);
  assert.equal(scriptUser("taken", passwd).userId, DEFAULT_USER_ID);
});

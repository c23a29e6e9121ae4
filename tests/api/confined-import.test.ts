/** An import names its zones in its body: a token confined to zones has it refused whole where one of them is not its own. */
import assert from "node:assert/strict";
import test from "node:test";
import { startWorld } from "./world.ts";

test("a confined token imports into its own zones only, whichever way they are named, and else nothing", async () => {
  await using world = await startWorld();
  const askerOf = (name: string) => world.askers.find((asker) => asker.name === name) ?? assert.fail(name);
  const admin = askerOf("user admin");
  const confined = askerOf("account admin of zone mine");
  const bundle = JSON.parse((await world.ask("GET", "/zones/export", admin)).text);
  const zonesOf = (...names: string[]) => ({
    ...bundle,
    zones: bundle.zones.filter(({ name }: { name: string }) => names.includes(name)),
  });
  const both = zonesOf("mine.example.", "other.example.");
  assert.equal(both.zones.length, 2);
  const mine = zonesOf("mine.example.");
  const json = (value: unknown, path = "/zones/import") => ({
    path,
    type: "application/json",
    text: JSON.stringify(value),
  });
  const csv = (zone: string, path = "/zones/import") => ({
    path,
    type: "text/csv",
    text: `zone,name,type,ttl,value,priority,weight,port,region\n${zone},a,A,60,192.0.2.9,,,,\n`,
  });
  const file = (zone: string, path = "/zones/import") => ({
    path,
    type: "text/dns",
    text: `$ORIGIN ${zone}\n@ 60 IN SOA ns.${zone} h.${zone} 1 2 3 4 5\na 60 IN A 192.0.2.9\n`,
  });
  const part = (text: string) => `--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n${text}\r\n`;
  const form = (...zones: string[]) => ({
    path: "/zones/import",
    type: "multipart/form-data; boundary=x",
    text: `${zones.map((zone) => part(file(zone).text)).join("")}--x--\r\n`,
  });
  const [ownId, otherId] = world.furniture.zones;
  const before = world.digest();
  for (const { path, type, text } of [
    json(both),
    json(zonesOf("other.example.")),
    json(JSON.parse(JSON.stringify(mine).replaceAll("mine.example.", "new.example."))),
    json(JSON.parse(JSON.stringify(mine).replaceAll("mine.example.", "sub.mine.example."))),
    csv("other.example."),
    csv("new.example."),
    file("other.example."),
    file("OTHER.example."),
    form("mine.example.", "other.example."),
    json(zonesOf("other.example."), `/zones/${otherId}/import`),
    file("other.example.", `/zones/${otherId}/import`),
  ]) {
    for (const query of ["", "?dry_run=true"]) {
      const request = { body: text, headers: { "content-type": type } };
      const { status, body } = await world.ask("POST", path + query, confined, request);
      assert.deepEqual([status, body.code], [403, "zone_not_permitted"], `${type} ${text}`);
      assert.equal(world.digest(), before);
    }
  }
  // A file of another zone under one's own id is no way around either.
  const { path, type, text } = file("other.example.", `/zones/${ownId}/import`);
  const crossed = await world.ask("POST", path, confined, { body: text, headers: { "content-type": type } });
  assert.ok(crossed.status === 400 || crossed.body.zones?.[0]?.created === 0, crossed.text);
  assert.equal(world.digest(), before);
  for (const own of [json(mine), csv("mine.example."), file("MINE.example."), form("mine.example.")]) {
    const request = { body: own.text, headers: { "content-type": own.type } };
    const { status, text } = await world.ask("POST", own.path, confined, request);
    assert.equal(status, 200, text);
  }
});

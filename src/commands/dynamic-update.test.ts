import assert from "node:assert/strict";
import { test } from "node:test";
import {
  givenUpdateZone,
  sortedLines,
  type UpdateOptions,
  updateOf,
  zoneLines,
} from "../../tests/support/update-text.ts";
import { RCODE } from "../dns/codes.ts";
import { applyUpdate } from "./dynamic-update.ts";

const SENDER = { address: "192.0.2.53" };

type Case = {
  readonly name: string;
  /** Records of the zone `corp.`, whose default TTL is 3600. */
  readonly zone?: string;
  readonly update: string;
  readonly options?: UpdateOptions;
  /** Default: NOERROR. */
  readonly rcode?: keyof typeof RCODE;
  /** The zone's records afterwards; absent: as before, its serial too. */
  readonly after?: string;
};

const WWW = "www 300 A 192.0.2.1\nwww 300 A 192.0.2.2";
const ADD = "add new 300 A 192.0.2.9";

/** RFC 2136 sections 2.4 and 3.2. */
const PREREQUISITES: readonly Case[] = [
  {
    name: "RRset exists: it does",
    zone: WWW,
    update: `prereq yxrrset WWW A\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  { name: "RRset exists: it does not", zone: WWW, update: `prereq yxrrset www MX\n${ADD}`, rcode: "NXRRSET" },
  {
    name: "RRset exists: of a type that zones do not hold",
    update: `prereq yxrrset www TYPE99\n${ADD}`,
    rcode: "NXRRSET",
  },
  { name: "RRset exists: the SOA", update: `prereq yxrrset @ SOA\n${ADD}`, after: "new 300 A 192.0.2.9" },
  {
    name: "RRset exists: a wildcard is no RRset of the name",
    zone: "* 300 A 192.0.2.1",
    update: `prereq yxrrset www A\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset does not exist: it does not",
    zone: WWW,
    update: `prereq nxrrset www MX\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  { name: "RRset does not exist: it does", zone: WWW, update: `prereq nxrrset www A\n${ADD}`, rcode: "YXRRSET" },
  { name: "RRset does not exist: the SOA", update: `prereq nxrrset @ SOA\n${ADD}`, rcode: "YXRRSET" },
  {
    name: "RRset does not exist: the NS that follows from the SOA",
    update: `prereq nxrrset @ NS\n${ADD}`,
    rcode: "YXRRSET",
  },
  {
    name: "RRset exists with values: exactly those, in another order",
    zone: WWW,
    update: `prereq yxrrset www A 192.0.2.2\nprereq yxrrset www A 192.0.2.1\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  {
    name: "RRset exists with values: one is missing in the zone",
    zone: WWW,
    update: `prereq yxrrset www A 192.0.2.1\nprereq yxrrset www A 192.0.2.2\nprereq yxrrset www A 192.0.2.3\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset exists with values: the zone has more",
    zone: WWW,
    update: `prereq yxrrset www A 192.0.2.1\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset exists with values: no RRset at all",
    update: `prereq yxrrset www A 192.0.2.1\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset exists with values: names in rdata without regard to case",
    zone: "@ 300 MX 10 mail",
    update: `prereq yxrrset @ MX 10 MAIL\n${ADD}`,
    after: "@ 300 MX 10 mail.corp.\nnew 300 A 192.0.2.9",
  },
  {
    name: "RRset exists with values: another number",
    zone: "@ 300 MX 10 mail",
    update: `prereq yxrrset @ MX 20 mail\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset exists with values: text with regard to case",
    zone: 'www 300 TXT "a"',
    update: `prereq yxrrset www TXT "A"\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "RRset exists with values: the NS that follows from the SOA",
    update: `prereq yxrrset @ NS ns1\n${ADD}`,
    after: "new 300 A 192.0.2.9",
  },
  { name: "RRset exists with values: another NS", update: `prereq yxrrset @ NS ns9\n${ADD}`, rcode: "NXRRSET" },
  {
    name: "RRset exists with values: an older SOA",
    update: `prereq yxrrset @ SOA ns1 hostmaster 1 7200 900 1209600 300\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "name is in use: it is",
    zone: WWW,
    update: `prereq yxdomain www\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  { name: "name is in use: it is not", zone: WWW, update: `prereq yxdomain ftp\n${ADD}`, rcode: "NXDOMAIN" },
  {
    name: "name is in use: an empty non-terminal is not",
    zone: "a.b 300 A 192.0.2.1",
    update: `prereq yxdomain b\n${ADD}`,
    rcode: "NXDOMAIN",
  },
  { name: "name is in use: the apex always is", update: `prereq yxdomain @\n${ADD}`, after: "new 300 A 192.0.2.9" },
  {
    name: "name is in use: an ALIAS counts",
    zone: "www 300 ALIAS target",
    update: `prereq nxdomain www\n${ADD}`,
    rcode: "YXDOMAIN",
  },
  {
    name: "name is not in use: it is not",
    zone: WWW,
    update: `prereq nxdomain ftp\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  { name: "name is not in use: it is", zone: WWW, update: `prereq nxdomain www\n${ADD}`, rcode: "YXDOMAIN" },
  {
    name: "the first prerequisite that fails decides",
    zone: WWW,
    update: `prereq nxrrset www A\nprereq nxdomain www\n${ADD}`,
    rcode: "YXRRSET",
  },
  {
    name: "values are compared behind all other prerequisites",
    zone: WWW,
    update: `prereq yxrrset www A 192.0.2.9\nprereq nxdomain www\n${ADD}`,
    rcode: "YXDOMAIN",
  },
  {
    name: "a prerequisite that fails comes before a malformed one",
    zone: WWW,
    update: `prereq nxdomain www\nraw-prereq www 255 255 7\n${ADD}`,
    rcode: "YXDOMAIN",
  },
  {
    name: "a malformed prerequisite comes before one that fails",
    zone: WWW,
    update: `raw-prereq www 255 255 7\nprereq nxdomain www\n${ADD}`,
    rcode: "FORMERR",
  },
  { name: "a prerequisite outside the zone", update: `prereq nxdomain www.other.\n${ADD}`, rcode: "NOTZONE" },
  {
    name: "a prerequisite that fails comes before a malformed update",
    zone: WWW,
    update: "prereq nxdomain www\nadd www.other. 300 A 192.0.2.1",
    rcode: "YXDOMAIN",
  },
  {
    name: "no name has an RRset of a meta type",
    zone: WWW,
    update: `raw-prereq www 255 252 0\n${ADD}`,
    rcode: "NXRRSET",
  },
  {
    name: "an RRset of a meta type is absent everywhere",
    zone: WWW,
    update: `raw-prereq www 254 252 0\n${ADD}`,
    after: `${WWW}\nnew 300 A 192.0.2.9`,
  },
  { name: "an RR of type ANY is no RRset", zone: WWW, update: `raw-prereq www 1 255 0\n${ADD}`, rcode: "NXRRSET" },
  { name: "prerequisites alone", zone: WWW, update: "prereq yxdomain www" },
  { name: "nothing at all", zone: WWW, update: "" },
];

/** RFC 2136 sections 2.5 and 3.4. */
const UPDATES: readonly Case[] = [
  { name: "add to a new name", update: ADD, after: "new 300 A 192.0.2.9" },
  { name: "add to an RRset", zone: WWW, update: "add www 300 A 192.0.2.3", after: `${WWW}\nwww 300 A 192.0.2.3` },
  {
    name: "add with another TTL changes that of the RRset",
    zone: WWW,
    update: "add www 60 A 192.0.2.3",
    after: "www 60 A 192.0.2.1\nwww 60 A 192.0.2.2\nwww 60 A 192.0.2.3",
  },
  { name: "add what is there", zone: WWW, update: "add www 300 A 192.0.2.1" },
  {
    name: "add what is there with another TTL",
    zone: WWW,
    update: "add www 60 A 192.0.2.1",
    after: "www 60 A 192.0.2.1\nwww 60 A 192.0.2.2",
  },
  { name: "TTL 0 is stored", update: "add new 0 A 192.0.2.9", after: "new 0 A 192.0.2.9" },
  {
    name: "a record with the zone's TTL is sent with that TTL again",
    zone: "www 0 A 192.0.2.1",
    update: "add www 3600 A 192.0.2.1",
  },
  {
    name: "several MX with numbers of their own",
    zone: "@ 300 MX 10 a",
    update: "add @ 300 MX 20 b\nadd @ 300 MX 10 c",
    after: "@ 300 MX 10 a.corp.\n@ 300 MX 20 b.corp.\n@ 300 MX 10 c.corp.",
  },
  {
    name: "the same host with another number is another MX",
    zone: "@ 300 MX 10 a",
    update: "add @ 300 MX 20 a\ndelete @ MX 10 a",
    after: "@ 300 MX 20 a.corp.",
  },
  {
    name: "SRV with weight and port 0 beside others",
    zone: "_x._tcp 300 SRV 1 2 3 a",
    update: "add _x._tcp 300 SRV 0 0 0 .",
    after: "_x._tcp 300 SRV 0 0 0 .\n_x._tcp 300 SRV 1 2 3 a.corp.",
  },
  {
    name: "CAA of two tags",
    update: 'add @ 300 CAA 0 issue "ca.example"\nadd @ 300 CAA 128 iodef "mailto:a@b"',
    after: '@ 300 CAA 0 issue "ca.example"\n@ 300 CAA 128 iodef "mailto:a@b"',
  },
  {
    name: "a name in upper case is the same name",
    zone: WWW,
    update: "delete WWW A 192.0.2.1",
    after: "www 300 A 192.0.2.2",
  },
  { name: "a wildcard is a name as any other", update: "add * 300 A 192.0.2.9", after: "* 300 A 192.0.2.9" },
  { name: "a name with a dot inside a label", update: "add a\\.b 300 A 192.0.2.9", after: "a\\.b 300 A 192.0.2.9" },
  { name: "delete an RR", zone: WWW, update: "delete www A 192.0.2.1", after: "www 300 A 192.0.2.2" },
  { name: "delete the last RR", zone: WWW, update: "delete www A 192.0.2.1\ndelete www A 192.0.2.2", after: "" },
  {
    name: "delete an RR that is not there",
    zone: WWW,
    update: "delete www A 192.0.2.3\ndelete ftp A 192.0.2.1\ndelete www AAAA 2001:db8::1",
  },
  {
    name: "delete an RR without regard to case in its rdata",
    zone: "@ 300 MX 10 mail",
    update: "delete @ MX 10 MAIL",
    after: "",
  },
  {
    name: "delete an RR that no record can hold",
    zone: 'www 300 CAA 0 issue "a"',
    update: 'delete www CAA 0 contactemail "a"',
  },
  { name: "delete an RRset", zone: `${WWW}\nwww 300 TXT "a"`, update: "delete www A", after: 'www 300 TXT "a"' },
  { name: "delete an RRset that is not there", zone: WWW, update: "delete www MX\ndelete ftp A" },
  {
    name: "delete a name",
    zone: `${WWW}\nwww 300 TXT "a"\na.www 300 A 192.0.2.7`,
    update: "delete www",
    after: "a.www 300 A 192.0.2.7",
  },
  { name: "delete a name that is not there", zone: WWW, update: "delete ftp" },
  {
    name: "delete the apex keeps its NS",
    zone: '@ 300 NS ns1\n@ 300 TXT "a"\n@ 300 MX 10 a',
    update: "delete @",
    after: "@ 300 NS ns1.corp.",
  },
  { name: "delete the NS of the apex", zone: "@ 300 NS ns1\n@ 300 NS ns2", update: "delete @ NS" },
  {
    name: "delete all NS of the apex but the last, one by one",
    zone: "@ 300 NS ns1\n@ 300 NS ns2",
    update: "delete @ NS ns1\ndelete @ NS ns2",
    after: "@ 300 NS ns2.corp.",
  },
  {
    name: "delete the last NS of a name that is not the apex",
    zone: "sub 300 NS ns1",
    update: "delete sub NS ns1",
    after: "",
  },
  { name: "the NS that follows from the SOA is the last", update: "delete @ NS ns1\ndelete @ NS\ndelete @" },
  {
    name: "an NS beside the one that follows from the SOA",
    update: "add @ 300 NS ns2",
    after: "@ 300 NS ns1.corp.\n@ 300 NS ns2.corp.",
  },
  { name: "the NS that follows from the SOA is added again", update: "add @ 3600 NS ns1" },
  {
    name: "the NS that follows from the SOA is exchanged",
    update: "add @ 300 NS ns2\ndelete @ NS ns1",
    after: "@ 300 NS ns2.corp.",
  },
  { name: "delete the SOA", update: "delete @ SOA\ndelete @ SOA ns1 hostmaster 1 7200 900 1209600 300" },
  { name: "an SOA that is older", update: "add @ 300 SOA ns9 hostmaster 1 1 1 1 1" },
  { name: "an SOA at another name", update: "add www 300 SOA ns9 hostmaster 4000000000 1 1 1 1" },
  { name: "CNAME where there is another type", zone: WWW, update: "add www 300 CNAME target" },
  { name: "another type where there is a CNAME", zone: "www 300 CNAME target", update: "add www 300 A 192.0.2.1" },
  { name: "CNAME at the apex", update: "add @ 300 CNAME target" },
  {
    name: "CNAME where there is a CNAME takes its place",
    zone: "www 300 CNAME old",
    update: "add www 60 CNAME new",
    after: "www 60 CNAME new.corp.",
  },
  {
    name: "CNAME in place of addresses in one update",
    zone: WWW,
    update: "delete www A\nadd www 300 CNAME target",
    after: "www 300 CNAME target.corp.",
  },
  {
    name: "addresses in place of a CNAME in one update",
    zone: "www 300 CNAME target",
    update: "delete www\nadd www 300 A 192.0.2.1",
    after: "www 300 A 192.0.2.1",
  },
  {
    name: "what was ignored does not come back",
    zone: WWW,
    update: "add www 300 CNAME target\ndelete www A",
    after: "",
  },
  {
    name: "an address where there is an ALIAS",
    zone: "www 300 ALIAS target",
    update: `${ADD}\nadd www 300 A 192.0.2.1`,
    rcode: "REFUSED",
  },
  {
    name: "CNAME where there is an ALIAS",
    zone: "www 300 ALIAS target",
    update: "add www 300 CNAME other",
    rcode: "REFUSED",
  },
  {
    name: "NS beside an ALIAS at the apex",
    zone: "@ 300 ALIAS target",
    update: "add @ 300 NS ns2",
    after: "@ 300 ALIAS target.corp.\n@ 300 NS ns1.corp.\n@ 300 NS ns2.corp.",
  },
  {
    name: "delete a name that has an ALIAS, and give it an address",
    zone: "www 300 ALIAS target",
    update: "delete www\nadd www 300 A 192.0.2.1",
    after: "www 300 A 192.0.2.1",
  },
  { name: "delete the addresses of an ALIAS", zone: "www 300 ALIAS target", update: "delete www A" },
  {
    name: "operations follow one another",
    zone: WWW,
    update: "delete www\nadd www 300 A 192.0.2.7\ndelete www A 192.0.2.7\nadd www 300 A 192.0.2.8",
    after: "www 300 A 192.0.2.8",
  },
  {
    name: "deleted and added again is no change",
    zone: WWW,
    update: "delete www A\nadd www 300 A 192.0.2.2\nadd www 300 A 192.0.2.1",
  },
  { name: "added and deleted again is no change", update: `${ADD}\ndelete new` },
  { name: "an update outside the zone", update: `${ADD}\nadd www.other. 300 A 192.0.2.1`, rcode: "NOTZONE" },
  {
    name: "a malformed update takes the good ones with it",
    update: `${ADD}\nraw-update www 1 255 300 00`,
    rcode: "FORMERR",
  },
  { name: "a type that zones do not hold", update: `${ADD}\nadd www 300 DS hex 00010801`, rcode: "REFUSED" },
  { name: "an ALIAS by its private number", update: `${ADD}\nraw-update www 1 65401 300 00`, rcode: "REFUSED" },
  { name: "the deletion of a type that zones do not hold", update: `${ADD}\ndelete www TYPE99`, rcode: "REFUSED" },
  { name: "a CAA tag that no record holds", update: `${ADD}\nadd www 300 CAA 0 contactemail "a"`, rcode: "REFUSED" },
  { name: "an unknown zone", update: ADD, options: { zone: "new.corp." }, rcode: "NOTAUTH" },
];

for (const { name, zone = "", update, options, rcode = "NOERROR", after } of [...PREREQUISITES, ...UPDATES]) {
  test(name, async () => {
    await using world = await givenUpdateZone(zone);
    const before = { lines: zoneLines(world.store), serial: world.store.serialOf("corp.") };
    const message = updateOf(update, options);
    const { rcode: given, detail } = await applyUpdate(world.context, SENDER, message);
    assert.equal(given, RCODE[rcode], detail);
    assert.equal(detail === "", rcode === "NOERROR");
    assert.deepEqual(zoneLines(world.store), after === undefined ? before.lines : sortedLines(after));
    const { serial = 0 } = before;
    const serialAfter = world.store.serialOf("corp.") ?? 0;
    if (after === undefined) assert.equal(serialAfter, serial);
    else assert.ok(serialAfter > serial);
  });
}

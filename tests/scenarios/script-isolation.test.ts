import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { processTree } from "../support/proc.ts";
import { waitFor } from "../support/wait.ts";
import { LONG_MS, openScriptLab, SCRIPT_USER, type ScriptLab } from "./script-lab.ts";

const ECHO = fileURLToPath(new URL("../support/echo-entry.mjs", import.meta.url));

/** A sub that tries to get an answer from an address: "ok", or the name of the errno. */
const REACH = `
use Socket qw(:DEFAULT inet_pton getaddrinfo IPPROTO_TCP IPPROTO_UDP);
use Errno;
sub name { my $n = $!+0; for (keys %!) { return $_ if $n && $!{$_} && /^E[A-Z]/ } return "errno$n" }
sub reach {
  my ($host, $port, $type) = @_;
  my ($err, @found) = getaddrinfo($host, $port, {flags => Socket::AI_NUMERICHOST(), socktype => $type});
  return "gai $err" if $err;
  my $to = $found[0];
  socket(my $s, $to->{family}, $type, 0) or return name();
  setsockopt($s, SOL_SOCKET, SO_RCVTIMEO, pack("l!l!", 5, 0));
  setsockopt($s, SOL_SOCKET, SO_SNDTIMEO, pack("l!l!", 5, 0));
  connect($s, $to->{addr}) or return name();
  if ($type == SOCK_DGRAM) { send($s, "x", 0) or return name() }
  recv($s, my $got, 100, 0);
  return $got eq "token\\n" ? "ok" : "silence";
}
`;

type Target = readonly [host: string, port: number];
const KEPT_AWAY: readonly Target[] = [
  ["169.254.169.254", 80],
  ["169.254.169.254", 81],
  ["::ffff:169.254.169.254", 80],
  ["168.63.129.16", 80],
  ["168.63.129.16", 32526],
  ["::ffff:168.63.129.16", 80],
  ["fd00:ec2::254", 80],
  ["fe80::7%wire", 80],
];
const ALLOWED: readonly Target[] = [
  ["203.0.113.9", 80],
  ["203.0.113.9", 32526],
  ["168.63.129.16", 81],
  ["fd77::2", 80],
  ["10.77.0.2", 81],
];

/** A program that tries targets over TCP and UDP and says what came of each in one line. */
function reaching(targets: readonly Target[]): string {
  const attempts = targets.flatMap(([host, port]) =>
    ["SOCK_STREAM", "SOCK_DGRAM"].map((type) => `reach('${host}', ${port}, ${type})`),
  );
  return `${REACH}\nprint STDERR join(" ", ${attempts.join(", ")}), "\\n";\nexit 1;`;
}

/** What a script said in its last line. */
async function said(lab: ScriptLab, program: string): Promise<string> {
  const { error, detail = "" } = await lab.perl(program);
  assert.equal(error, "script", detail);
  return detail.replace(/^exit status \d+: /, "");
}

async function openLab(context: TestContext): Promise<ScriptLab | undefined> {
  const lab = await openScriptLab(context);
  if (lab !== undefined) context.after(() => lab[Symbol.asyncDispose]());
  return lab;
}

async function networkIsKept(context: TestContext, lab: ScriptLab): Promise<void> {
  const echo = await lab.network.start("there", "echo", [process.execPath, ECHO, "80", "81", "32526"]);
  context.after(() => echo.stop());
  await waitFor("the servers", LONG_MS, () => echo.output().includes("ready"));

  await context.test("metadata is there for others of this machine", async () => {
    const program = reaching([...KEPT_AWAY, ...ALLOWED]).replaceAll("exit 1", "exit 0");
    const others = ["setpriv", "--reuid=60999", "--regid=60999", "--clear-groups", "perl", "-e", program];
    const output = await lab.network.run("here", ...others);
    assert.deepEqual(new Set(output.trim().split(" ")), new Set(["ok"]));
  });

  await context.test("a script cannot reach it, by no address and no protocol", async () => {
    const codes = (await said(lab, reaching(KEPT_AWAY))).split(" ");
    assert.equal(codes.length, KEPT_AWAY.length * 2);
    assert.deepEqual(new Set(codes), new Set(["EACCES"]));
  });

  await context.test("it reaches everything else, also on other ports of the wire server", async () => {
    const codes = (await said(lab, reaching(ALLOWED))).split(" ");
    assert.equal(codes.length, ALLOWED.length * 2);
    assert.deepEqual(new Set(codes), new Set(["ok"]));
  });

  await context.test("it cannot ping it", async () => {
    await lab.network.run("here", "sh", "-c", "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range");
    const program = (host: string) => `${REACH}
      socket(my $s, PF_INET, SOCK_DGRAM, 1) or die "no socket: ".name();
      my $sent = send($s, pack("CCnnn", 8, 0, 0, 1, 1), 0, pack_sockaddr_in(0, inet_aton("${host}")));
      print STDERR $sent ? "sent" : name(), "\\n"; exit 1;`;
    assert.equal(await said(lab, program("203.0.113.9")), "sent");
    assert.equal(await said(lab, program("169.254.169.254")), "EACCES");
  });

  await context.test("it has no other ways: raw packets, the hypervisor, a source route", async () => {
    const program = `${REACH}
      my @all;
      push @all, socket(my $raw, PF_INET, SOCK_RAW, 1) ? "ok" : name();
      push @all, socket(my $packet, 17, SOCK_RAW, 0) ? "ok" : name();
      push @all, socket(my $vsock, 40, SOCK_STREAM, 0) ? "ok" : name();
      socket(my $s, PF_INET, SOCK_DGRAM, 0) or die;
      push @all, setsockopt($s, 0, 4, pack("C*", 131, 7, 4, 169, 254, 169, 254)) ? "ok" : name();
      print STDERR "@all\\n"; exit 1;`;
    assert.equal(await said(lab, program), "EPERM EAFNOSUPPORT EAFNOSUPPORT EPERM");
  });
}

async function rightsAreNone(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test("it is an unprivileged user and can become no other", async () => {
    const program = `
      open(my $f, "<", "/proc/self/status") or die; my %s = map { /^(\\w+):\\s+(.*)$/ } <$f>;
      my @map = split " ", do { open(my $m, "<", "/proc/self/uid_map") or die; <$m> };
      $> = 0; $< = 0;
      print STDERR join(" ", $<, $>, (split " ", $()[0], $s{CapEff}, $s{CapBnd}, $s{NoNewPrivs}, $s{Seccomp}, $map[0], $map[2]), "\\n";
      exit 1;`;
    const none = "0000000000000000";
    const user = `${SCRIPT_USER}`;
    assert.deepEqual((await said(lab, program)).split(" "), [user, user, user, none, none, "1", "2", user, "1"]);
  });

  await context.test("it can make no namespaces and no mounts", async () => {
    const program = `
      my @tries = (["unshare", "--user"], ["unshare", "--net"], ["unshare", "--mount"], ["mount", "-t", "tmpfs", "x", "/tmp"]);
      open(STDOUT, ">", "/dev/null"); open(my $kept, ">&", \\*STDERR); open(STDERR, ">", "/dev/null");
      my @all = map { system(@$_, $_->[0] eq "unshare" ? "true" : ()) == 0 ? "done" : "refused" } @tries;
      print $kept "@all\\n"; close $kept; exit 1;`;
    assert.equal(await said(lab, program), "refused refused refused refused");
  });

  await context.test("it sees no process of this machine and can end none", async () => {
    const count = `opendir(my $d, "/proc"); print STDERR scalar(grep { /^\\d+$/ } readdir $d), "\\n"; exit 1;`;
    assert.equal(await said(lab, count), "2");
    const runner = lab.runner().pid;
    const tries = `my @all = map { kill(0, $_) ? "there" : "not" } (${runner}, ${process.pid}); kill(9, -1); print STDERR "@all\\n"; exit 1;`;
    const outcome = await lab.perl(tries);
    assert.equal(outcome.error, "script");
    assert.match(outcome.detail ?? "", /not not|signal 9/);
    assert.equal(lab.runner().status(), undefined);
    assert.equal((await lab.run("/usr/bin/true")).error, undefined);
  });

  await context.test("it has no terminal", async () => {
    assert.equal(await said(lab, `print STDERR open(my $t, "<", "/dev/tty") ? "tty" : "none", "\\n"; exit 1;`), "none");
  });
}

async function viewIsSmall(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test("it sees nothing of the service, of other users, or of this test", async () => {
    const hidden = [
      ...["/root", "/home", "/var", "/run", "/sys", "/boot", "/srv", "/mnt", "/opt", "/etc/passwd", "/etc/shadow"],
      ...["/etc/machine-id", "/etc/ssh", "/etc/ssl/private", "/var/run/docker.sock", process.cwd(), process.execPath],
      ...[lab.secretDirectory, join(lab.secretDirectory, "key"), fileURLToPath(import.meta.url)],
    ];
    const list = hidden.map((path) => `'${path}'`).join(", ");
    assert.equal(await said(lab, `print STDERR "seen:", grep({ -e || -l } ${list}), "\\n"; exit 1;`), "seen:");
    const root = await said(
      lab,
      `opendir(my $d, "/"); print STDERR join(" ", sort grep { !/^\\./ } readdir $d), "\\n"; exit 1;`,
    );
    const expected = /^(?:bin |dev |etc |lib |lib32 |lib64 |libx32 |proc |sbin |tmp |usr )+usr$/;
    assert.match(`${root.replace(/ usr$/, " usr ")}usr`, expected);
  });

  await context.test("it writes to two small places only, and nobody finds it there later", async () => {
    const program = `
      my @all = map { open(my $f, ">", "$_/written") ? "ok" : "no" } ("/tmp", "/dev/shm", "/", "/usr", "/etc", "/dev", "/proc");
      print STDERR "@all\\n"; exit 1;`;
    assert.equal(await said(lab, program), "ok ok no no no no no");
    assert.equal(await said(lab, `print STDERR -e "/tmp/written" ? "there" : "gone", "\\n"; exit 1;`), "gone");
    const fill = `
      use Errno; $SIG{XFSZ} = "IGNORE";
      open(my $f, ">", "/tmp/big") or die; my $n = 0; my $block = "x" x 65536;
      while ($n < 1000) { my $got = syswrite($f, $block); last unless defined $got && $got == 65536; $n++ }
      print STDERR $n * 65536 <= 16*1024*1024 ? "bounded" : "endless", "\\n"; exit 1;`;
    assert.equal(await said(lab, fill), "bounded");
  });

  await context.test("it has no environment and no open files but its own", async () => {
    const program = `
      opendir(my $d, "/proc/self/fd"); my @fds = grep { /^\\d+$/ && -e "/proc/self/fd/$_" && $_ != fileno($d) } readdir $d;
      print STDERR join(" ", (sort keys %ENV), (sort { $a <=> $b } map { readlink("/proc/self/fd/$_") =~ s/:.*//r } @fds)), "\\n";
      exit 1;`;
    const [lang, path, pwd, ...files] = (await said(lab, program)).split(" ");
    assert.deepEqual([lang, path, pwd], ["LANG", "PATH", "PWD"]);
    // Perl holds the script itself open.
    assert.equal(files.filter((file) => !file.startsWith("/")).length, 3, files.join(" "));
  });
}

async function changesAreNoticed(context: TestContext, lab: ScriptLab): Promise<void> {
  await context.test("when a rule is taken away it is back before the next script", async () => {
    const rule = ["pref", "1", "uidrange", `${SCRIPT_USER}-${SCRIPT_USER}`, "to", "169.254.0.0/16", "prohibit"];
    await lab.network.run("here", "ip", "rule", "del", ...rule);
    const isBack = async () => (await lab.network.run("here", "ip", "rule", "show")).includes("169.254.0.0/16");
    assert.equal(await isBack(), false);
    await waitFor("the rule", LONG_MS, async () => {
      await lab.run("/usr/bin/true");
      return await isBack();
    });
    assert.match(await said(lab, reaching([["169.254.169.254", 80]])), /^EACCES EACCES$/);
  });

  await context.test("nothing runs while this machine has an address that scripts must not reach", async () => {
    await lab.network.run("here", "ip", "address", "add", "169.254.20.10/32", "dev", "lo");
    const refused = await waitFor("the refusal", LONG_MS, async () => {
      const outcome = await lab.run("/usr/bin/true");
      // A script that is under way when the address is noticed is ended; those after it are told why.
      return /169\.254\.20\.10/.test(outcome.detail ?? "") && outcome;
    });
    assert.equal(refused.error, "runner");
    await lab.network.run("here", "ip", "address", "del", "169.254.20.10/32", "dev", "lo");
    await waitFor("scripts again", LONG_MS, async () => (await lab.run("/usr/bin/true")).error === undefined);
  });

  await context.test("nothing of a script is left", async () => {
    await waitFor("an empty runner", LONG_MS, () => processTree(lab.runner().pid).length <= 1);
  });
}

test("scripts behind their walls", async (context) => {
  const lab = await openLab(context);
  if (lab === undefined) return;
  await networkIsKept(context, lab);
  await rightsAreNone(context, lab);
  await viewIsSmall(context, lab);
  await changesAreNoticed(context, lab);
});

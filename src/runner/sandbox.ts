/**
 * The walls around a script: what bubblewrap is told. Namespaces of its own for users, processes, mounts, IPC and names;
 * the network is the host's, and blocked-addresses.ts keeps it from where a script must not go.
 */
import { FILE_BYTES_MAX, OPEN_FILES_MAX, PROCESS_DATA_BYTES_MAX, PROCESSES_MAX } from "./limits.ts";

/** Outside of these nothing of the host can be seen. Who resolves names or checks certificates needs the files of /etc. */
const ETC_VISIBLE = [
  "alternatives",
  "ca-certificates",
  "crypto-policies",
  "gai.conf",
  "host.conf",
  "hosts",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "nsswitch.conf",
  "pki/ca-trust",
  "pki/tls/certs",
  "protocols",
  "resolv.conf",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
] as const;

/** On a system with a merged /usr they are links into it; elsewhere directories. */
const ROOT_PARTS = ["bin", "lib", "lib32", "lib64", "sbin"] as const;

/** Where these are found inside of the sandbox. */
const PRLIMIT = "/usr/bin/prlimit";
const NICE = "/usr/bin/nice";
/** Of 19: scripts wait for whatever else the machine has to do, first of all for the runner, which has to end them. */
const NICENESS = 15;

export type Sandbox = {
  /** Scripts of this host's administrator, shown where they lie; undefined: only what /usr has. */
  readonly directory: string | undefined;
  /** Descriptor with the filter of system calls (seccomp-filter.ts), in the child. */
  readonly filterDescriptor: number;
};

/**
 * Arguments of bwrap for one command. Every capability is gone, no new ones can be had (bwrap sets no_new_privs), and
 * within the sandbox no further user namespace can be made, which would be the way to a network namespace and to mounts.
 * All of its processes die with its first one, and that one with bwrap, and bwrap with the runner.
 */
export function sandboxArguments({ directory, filterDescriptor }: Sandbox, command: readonly string[]): string[] {
  const writable = (path: string) => ["--size", `${FILE_BYTES_MAX}`, "--tmpfs", path];
  return [
    ...[
      "--unshare-user",
      "--disable-userns",
      "--assert-userns-disabled",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
    ],
    ...["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"],
    ...["--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8"],
    ...["--ro-bind", "/usr", "/usr"],
    ...ROOT_PARTS.flatMap((part) => ["--ro-bind-try", `/${part}`, `/${part}`]),
    ...ETC_VISIBLE.flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
    ...["--proc", "/proc", "--dev", "/dev"],
    // Mapped, it is shared memory that nobody counts; as a plain bind it is no device any more.
    ...["--ro-bind", "/dev/zero", "/dev/zero"],
    ...writable("/tmp"),
    ...writable("/dev/shm"),
    // Last, for it may lie below one of the others.
    ...(directory === undefined ? [] : ["--ro-bind", directory, directory]),
    ...["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"],
    ...["--seccomp", `${filterDescriptor}`],
    "--",
    ...command,
  ];
}

/** The command behind the limits of each of its processes. `cpuSeconds`: of each process, should it ever outlive its time. */
export function limitedCommand(cpuSeconds: number, command: readonly string[]): string[] {
  return [
    ...[NICE, "-n", `${NICENESS}`, PRLIMIT],
    ...[`--data=${PROCESS_DATA_BYTES_MAX}`, `--nproc=${PROCESSES_MAX}`, `--nofile=${OPEN_FILES_MAX}`],
    ...[`--fsize=${FILE_BYTES_MAX}`, `--cpu=${cpuSeconds}`, "--core=0", "--memlock=65536", "--msgqueue=65536"],
    "--",
    ...command,
  ];
}

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Puts a wait before each flush, adds a byte for it to FLUSH_LOG, and lets no page be written while the file FAIL_FILE is
 * there (errno 28, ENOSPC). None of the three has to be set.
 */
const SHIM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static void wait_before_flush(void) {
  const char *text = getenv("FLUSH_WAIT_MS");
  long wait_ms = text ? atol(text) : 0;
  struct timespec time = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
  nanosleep(&time, 0);
  const char *log = getenv("FLUSH_LOG");
  int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (fd < 0) return;
  if (write(fd, ".", 1) < 1) abort();
  close(fd);
}
static int is_full(void) {
  const char *file = getenv("FAIL_FILE");
  if (!file || access(file, F_OK)) return 0;
  errno = ENOSPC;
  return 1;
}
int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
  wait_before_flush();
  return real(fd);
}
int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  wait_before_flush();
  return real(fd);
}
#define GUARDED(name, type, count_type) \\
  ssize_t name(int fd, type from, count_type count, off_t offset) { \\
    static ssize_t (*real)(int, type, count_type, off_t); \\
    if (!real) real = dlsym(RTLD_NEXT, #name); \\
    return is_full() ? -1 : real(fd, from, count, offset); \\
  }
GUARDED(pwrite, const void *, size_t)
GUARDED(pwrite64, const void *, size_t)
GUARDED(pwritev, const struct iovec *, int)
GUARDED(pwritev64, const struct iovec *, int)
`;

/** Compiles the shim into `directory` and gives what LD_PRELOAD takes; undefined where there is no C compiler. */
export function buildSlowDisk(directory: string): string | undefined {
  const source = join(directory, "slow-disk.c");
  const library = join(directory, "slow-disk.so");
  writeFileSync(source, SHIM);
  const { error, status, stderr } = spawnSync("gcc", ["-shared", "-fPIC", "-o", library, source, "-ldl"]);
  if (error !== undefined) return undefined;
  if (status !== 0) throw new Error(`gcc: ${stderr}`);
  return library;
}

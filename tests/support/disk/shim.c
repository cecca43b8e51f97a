/* The disk under a database, between SQLite and libc: it records what is written, and fails when it is told to.

   LD_PRELOAD it into a process whose SQLite calls libc. Only files whose path contains DISK_FILES count.

   DISK_RECORD  a file to which every change is appended:
                op (1: w write, t truncate, s sync, u unlink), path length (4), offset (8), length (8), path, data
   DISK_FAULT   torn: half of a write, then the process ends; errno: writes fail with DISK_ERRNO;
                sync: syncs fail with EIO; none if it is not set
   DISK_FROM    the first call of that kind that fails, counted from 1; DISK_COUNT how many fail (0: all after it) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long writes, syncs;

static long number(const char *name, long usual) {
  const char *text = getenv(name);
  return text ? atol(text) : usual;
}

static int is(const char *fault) {
  const char *chosen = getenv("DISK_FAULT");
  return chosen && !strcmp(chosen, fault);
}

static int path_of(int fd, char *path, size_t size) {
  const char *wanted = getenv("DISK_FILES");
  char link[64];
  ssize_t length;
  if (!wanted) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((length = readlink(link, path, size - 1)) < 0) return 0;
  path[length] = 0;
  return strstr(path, wanted) && !strstr(path, "-shm");
}

static void record(char op, const char *path, int64_t offset, const void *data, int64_t length) {
  static int out = -1;
  const char *name = getenv("DISK_RECORD");
  static ssize_t (*plain)(int, const void *, size_t);
  int64_t sizes[2] = {offset, length};
  uint32_t path_length = strlen(path);
  size_t total = 1 + 4 + 16 + path_length + (data ? length : 0);
  char *all, *at;
  if (!name) return;
  if (!plain) plain = dlsym(RTLD_NEXT, "write");
  if (out < 0) out = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  at = all = malloc(total);
  *at++ = op;
  memcpy(at, &path_length, 4), at += 4;
  memcpy(at, sizes, 16), at += 16;
  memcpy(at, path, path_length), at += path_length;
  if (data) memcpy(at, data, length);
  if (plain(out, all, total) != (ssize_t)total) abort();
  free(all);
}

static int due(long call) {
  long from = number("DISK_FROM", 1), count = number("DISK_COUNT", 0);
  return call >= from && (!count || call < from + count);
}

typedef ssize_t (*writer)(int, const void *, size_t, off64_t);

static ssize_t written(writer plain, int fd, const void *data, size_t size, off64_t offset) {
  char path[4096];
  ssize_t done;
  if (!path_of(fd, path, sizeof path)) return plain(fd, data, size, offset);
  writes++;
  if (is("torn") && due(writes)) {
    plain(fd, data, size / 2, offset);
    _exit(137);
  }
  if (is("errno") && due(writes)) {
    errno = number("DISK_ERRNO", EIO);
    return -1;
  }
  done = plain(fd, data, size, offset);
  if (done > 0) record('w', path, offset, data, done);
  return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  static writer plain;
  if (!plain) plain = (writer)dlsym(RTLD_NEXT, "pwrite64");
  return written(plain, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return pwrite64(fd, data, size, offset); }

int ftruncate64(int fd, off64_t size) {
  static int (*plain)(int, off64_t);
  char path[4096];
  int done;
  if (!plain) plain = dlsym(RTLD_NEXT, "ftruncate64");
  done = plain(fd, size);
  if (!done && path_of(fd, path, sizeof path)) record('t', path, size, NULL, 0);
  return done;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(const char *name, int fd) {
  int (*plain)(int) = dlsym(RTLD_NEXT, name);
  char path[4096];
  int done;
  if (!path_of(fd, path, sizeof path)) return plain(fd);
  syncs++;
  if (is("sync") && due(syncs)) {
    errno = EIO;
    return -1;
  }
  done = plain(fd);
  if (!done) record('s', path, 0, NULL, 0);
  return done;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }

int unlink(const char *path) {
  static int (*plain)(const char *);
  const char *wanted = getenv("DISK_FILES");
  int done;
  if (!plain) plain = dlsym(RTLD_NEXT, "unlink");
  done = plain(path);
  if (!done && wanted && strstr(path, wanted) && !strstr(path, "-shm")) record('u', path, 0, NULL, 0);
  return done;
}

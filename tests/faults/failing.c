/* Makes calls of the system fail that a library under test makes, the k-th of a kind:
 *
 *   LD_PRELOAD=libfailing.so ELBOW_FAIL=mmap:17 ./app        the 17th mmap fails
 *   LD_PRELOAD=libfailing.so ELBOW_FAIL=write:3+ ./app       the 3rd write fails, and all that follow
 *
 * Kinds: memory (malloc, calloc, realloc, aligned ones), write, open (also mkdir and rename), room (posix_fallocate), mmap,
 * thread (pthread_create), sync (fsync, fdatasync). Only calls by libraries whose name contains ELBOW_FAIL_CALLER (libelbow)
 * are counted: directly, or through the libraries of C and C++. A program that forks for each k calls fail_call(kind, k, more),
 * which begins to count anew; calls_counted() says how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct Range { char *from, *to; } tested[64], passed_on[64];
static int tested_count, passed_on_count;
static char kind_wanted[16];
static long wanted, counted;
static int all_later;
static __thread int busy __attribute__((tls_model("initial-exec")));

static void add(struct Range* ranges, int* count, const struct dl_phdr_info* library) {
  for (int i = 0; i < library->dlpi_phnum && *count < 64; ++i) {
    const ElfW(Phdr)* part = &library->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
      ranges[*count].from = (char*)library->dlpi_addr + part->p_vaddr;
      ranges[(*count)++].to = (char*)library->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
  }
}

static int look_at(struct dl_phdr_info* library, size_t size, void* caller) {
  static const char* const handing_on[] = {"libfailing", "libstdc++", "libc.so", "libgcc_s", "ld-linux", "libpthread"};
  (void)size;
  if (strstr(library->dlpi_name, caller) != NULL) add(tested, &tested_count, library);
  for (size_t i = 0; i < sizeof handing_on / sizeof *handing_on; ++i) {
    if (strstr(library->dlpi_name, handing_on[i]) != NULL) add(passed_on, &passed_on_count, library);
  }
  return 0;
}

static int within(const struct Range* ranges, int count, const void* place) {
  for (int i = 0; i < count; ++i) {
    if ((char*)place >= ranges[i].from && (char*)place < ranges[i].to) return 1;
  }
  return 0;
}

void fail_call(const char* kind, long number, int more) {
  void* frames[4];
  const char* caller = getenv("ELBOW_FAIL_CALLER");
  busy = 1;
  backtrace(frames, 4); /* loads what it needs */
  tested_count = passed_on_count = 0;
  dl_iterate_phdr(look_at, (void*)(caller != NULL ? caller : "libelbow"));
  snprintf(kind_wanted, sizeof kind_wanted, "%s", kind);
  counted = 0;
  all_later = more;
  busy = 0;
  __atomic_store_n(&wanted, number, __ATOMIC_SEQ_CST);
}

long calls_counted(void) { return counted; }

__attribute__((constructor)) static void begin(void) {
  const char* text = getenv("ELBOW_FAIL");
  const char* colon = text == NULL ? NULL : strchr(text, ':');
  char kind[16];
  if (colon != NULL) {
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - text), text);
    fail_call(kind, atol(colon + 1), text[strlen(text) - 1] == '+');
  }
}

static int fails(const char* kind) {
  void* frames[16];
  if (wanted == 0 || busy || strcmp(kind, kind_wanted) != 0) return 0;
  busy = 1;
  const int count = backtrace(frames, 16);
  int at = 0;
  while (at < count && within(passed_on, passed_on_count, frames[at])) ++at;
  const int ours = at < count && within(tested, tested_count, frames[at]);
  busy = 0;
  if (!ours) return 0;
  const long number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
  return number == wanted || (all_later && number > wanted);
}

#define NEXT(name)               \
  static __typeof__(name)* next; \
  if (next == NULL) next = (__typeof__(name)*)dlsym(RTLD_NEXT, #name);
#define REFUSE(code, value) return errno = (code), (value)

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  if (fails("memory")) REFUSE(ENOMEM, NULL);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  if (fails("memory")) REFUSE(ENOMEM, NULL);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  if (fails("memory")) REFUSE(ENOMEM, NULL);
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  if (fails("memory")) REFUSE(ENOMEM, NULL);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** made, size_t alignment, size_t size) {
  if (fails("memory")) return ENOMEM;
  *made = __libc_memalign(alignment, size);
  return *made == NULL ? ENOMEM : 0;
}

ssize_t write(int file, const void* bytes, size_t count) {
  NEXT(write);
  if (fails("write")) REFUSE(ENOSPC, -1);
  return next(file, bytes, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t place) {
  NEXT(pwrite);
  if (fails("write")) REFUSE(ENOSPC, -1);
  return next(file, bytes, count, place);
}
int open(const char* path, int flags, ...) {
  NEXT(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (fails("open")) REFUSE(EMFILE, -1);
  return next(path, flags, mode);
}
int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  if (fails("open")) REFUSE(ENOSPC, -1);
  return next(path, mode);
}
int rename(const char* from, const char* to) {
  NEXT(rename);
  if (fails("open")) REFUSE(ENOSPC, -1);
  return next(from, to);
}
int posix_fallocate(int file, off_t from, off_t size) {
  NEXT(posix_fallocate);
  if (fails("room")) return ENOSPC;
  return next(file, from, size);
}
void* mmap(void* at, size_t size, int may, int flags, int file, off_t from) {
  NEXT(mmap);
  if (fails("mmap")) REFUSE(ENOMEM, MAP_FAILED);
  return next(at, size, may, flags, file, from);
}
int fsync(int file) {
  NEXT(fsync);
  if (fails("sync")) REFUSE(EIO, -1);
  return next(file);
}
int fdatasync(int file) {
  NEXT(fdatasync);
  if (fails("sync")) REFUSE(EIO, -1);
  return next(file);
}
int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  NEXT(pthread_create);
  if (fails("thread")) return EAGAIN;
  return next(made, how, run, with);
}

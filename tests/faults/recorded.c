/* A traced program, once for every STEP-th k of FIRST to LAST, whose k-th call of a kind fails in the recorder (failing.c,
 * preloaded):
 *
 *   recorded KIND FIRST LAST STEP FOLDER              with elbow_trace.h; where k is odd exit() stops the trace
 *   mpi_recorded KIND FIRST LAST STEP FOLDER          with MPI (WITH_MPI), a process by itself, the interposer preloaded
 *
 * Writes a line for each: k, how it ended (waitpid's status), how many calls were counted. Its trace is FOLDER/K, what it
 * printed FOLDER/K.out and FOLDER/K.err. A k behind "+" makes all later calls fail, too: FIRST 3+. Ends when fewer than k calls
 * were there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kCode = 7, kPatience = 20 };

#ifdef WITH_MPI
#include <mpi.h>

static int run(long k) {
  (void)k;
  int level, all = 0, one = 1, messages[40] = {0};
  MPI_Request requests[40];
  MPI_Comm other;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 20; ++i) {
      MPI_Irecv(&messages[i], 1, MPI_INT, i % 2 ? 0 : MPI_ANY_SOURCE, 10 * step + i, other, &requests[i]);
    }
    for (int i = 0; i < 20; ++i) MPI_Isend(&one, 1, MPI_INT, 0, 10 * step + i, other, &requests[20 + i]);
    MPI_Waitall(40, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 20; ++i) all += messages[i];
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_free(&other);
  MPI_Finalize();
  return all;
}
#else
#include "elbowroom/trace.h"

static void* record(void* type) {
  for (int i = 0; i < 6000; ++i) elbow_trace_event(type, 1, i, 0);
  return NULL;
}

static void say(int failed) {
  if (failed) fprintf(stderr, "%s\n", elbow_trace_error());
}

static int run(long k) {
  static const elbow_trace_type none;
  pthread_t threads[2];
  elbow_trace_summary all = {.size = sizeof all};
  const int started = elbow_trace_start_from_environment() == 0;
  say(!started);
  const int category = started ? elbow_trace_category("work") : -1;
  const elbow_trace_type* type = category < 0 ? &none : elbow_trace_type_new("step", category, NULL, "i", NULL);
  if (started) say(category < 0 || type == NULL);
  if (type == NULL) type = &none;
  elbow_trace_region(1);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, record, (void*)type);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (type != &none) elbow_trace_text(type, 1, "a text");
  record((void*)type);
  elbow_trace_region(0);
  if (started && k % 2 == 0) say(elbow_trace_stop(&all) != 0);
  return 60;
}
#endif

static void one(const char* kind, long k, int more, const char* folder, long* counted) {
  char name[4096];
  void (*fail)(const char*, long, int) = (void (*)(const char*, long, int))dlsym(RTLD_DEFAULT, "fail_call");
  long (*counts)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "calls_counted");
  if (fail == NULL) abort();
  snprintf(name, sizeof name, "%s/%ld.out", folder, k);
  freopen(name, "w", stdout);
  snprintf(name, sizeof name, "%s/%ld.err", folder, k);
  freopen(name, "w", stderr);
  snprintf(name, sizeof name, "%s/%ld", folder, k);
  setenv("ELBOW_TRACE_DIRECTORY", name, 1);
  alarm(kPatience);
  fail(kind, k, more);
  printf("result %d\n", run(k));
  fflush(stdout);
  *counted = counts();
  exit(kCode);
}

int main(int count, char** words) {
  if (count != 6) return 2;
  long* const counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int more = strchr(words[2], '+') != NULL;
  for (long k = atol(words[2]); k <= atol(words[3]); k += atol(words[4])) {
    int status = -1;
    *counted = 0;
    const pid_t child = fork();
    if (child == 0) one(words[1], k, more, words[5], counted);
    waitpid(child, &status, 0);
    printf("%ld %d %ld\n", k, status, *counted);
    fflush(stdout);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kCode && *counted < k) break;
  }
  return 0;
}

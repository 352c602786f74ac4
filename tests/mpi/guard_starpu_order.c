/* The order in which one worker of StarPU runs tasks, while a message of 64 MiB is in flight on the board of ELBOW_GUARD (as
 * another process would publish it) and then none. Words choose: "again" starts StarPU twice, "own" brings a policy,
 * "wrapped" asks for the guarded policy by name, as StarPU 1.4 does, "rising" gives each memory-bound task a higher priority than
 * those before, and its number in place of m. Prints the tasks' letters: m, c; then the setting that the lever saw. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <starpu.h>
#include <starpu_scheduler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elbowroom/guard.h"

enum { kMessage = 64 << 20, kPairs = 4, kLever = 1 };

static char order[4 * kPairs + 1];
static int count;
static elbow_guard* guard;
static elbow_guard_rank* place;

static void note(void* buffers[], void* argument) {
  (void)buffers;
  order[count++] = *(const char*)argument;
}

static void end_message(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  elbow_guard_end(place, ELBOW_GUARD_OUT, kMessage);
}

static void wait_for_go(void* buffers[], void* argument) {
  (void)buffers;
  while (!*(volatile int*)argument) usleep(100);
}

static struct starpu_codelet memory = {.cpu_funcs = {note}, .nbuffers = 0, .name = "memory"};
static struct starpu_codelet compute = {.cpu_funcs = {note}, .nbuffers = 0, .name = "compute"};
static struct starpu_codelet end = {.cpu_funcs = {end_message}, .nbuffers = 0, .name = "end"};
static struct starpu_codelet gate = {.cpu_funcs = {wait_for_go}, .nbuffers = 0, .name = "gate"};

static void submit(struct starpu_codelet* codelet, void* argument, int priority) {
  struct starpu_task* task = starpu_task_create();
  task->priority = priority;
  task->cl = codelet;
  task->cl_arg = argument;
  if (starpu_task_submit(task) != 0) exit(3);
}

static int has(int argc, char** argv, const char* word) {
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], word) == 0) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = 1;
  conf.nopencl = conf.ncuda = 0;
  struct starpu_sched_policy own;
  if (has(argc, argv, "own")) {
    own = **starpu_sched_get_predefined_policies();
    own.policy_name = "own";
    conf.sched_policy = &own;
  }
  if (has(argc, argv, "wrapped")) {
    struct starpu_sched_policy* (*ask)(const char*) = dlsym(RTLD_DEFAULT, "starpu_get_sched_lib_policy");
    conf.sched_policy = ask == NULL ? NULL : ask("guarded-eager");
    if (conf.sched_policy == NULL) return 4;
  }
  if (starpu_init(&conf) != 0 || (has(argc, argv, "again") && starpu_init(&conf) != 0)) return 3;
  guard = elbow_guard_make(getenv("ELBOW_GUARD"), 4);
  place = elbow_guard_join(guard, 0, 1);
  elbow_guard_set(guard, kLever, strtoul(argv[1], NULL, 10));
  elbow_guard_begin(place, ELBOW_GUARD_OUT, kMessage);
  static char m = 'm', c = 'c', numbers[] = "0123";
  const int rising = has(argc, argv, "rising");
  static volatile int go = 0;
  submit(&gate, (void*)&go, 0); /* all others are there before the first one runs */
  for (int i = 0; i < kPairs; ++i) {
    if (rising)
      submit(&memory, &numbers[i], i);
    else
      submit(&memory, &m, 0);
    submit(&compute, &c, 0);
  }
  submit(&end, NULL, 0);
  for (int i = 0; i < kPairs; ++i) submit(&compute, &c, 0);
  go = 1;
  starpu_task_wait_for_all();
  printf("%s %lu\n", order, (unsigned long)elbow_guard_setting(guard, ELBOW_GUARD_SETTINGS - 1 - kLever));
  if (has(argc, argv, "again")) starpu_shutdown();
  starpu_shutdown();
  return 0;
}

/* A runtime that keeps tasks away from messages: while much is in flight on this node, it takes tasks that need little memory
 * bandwidth first. It waits for none: with only the others left, it runs those. */
#include <stdio.h>

#include "elbowroom/guard.h"

struct task {
  void (*work)(void);
  int needs_memory;
  int is_done;
};

static void compute(void) { puts("a task that computes"); }
static void copy(void) { puts("a task that needs memory"); }

static struct task tasks[] = {{copy, 1, 0}, {compute, 0, 0}, {copy, 1, 0}, {compute, 0, 0}};
enum { kTasks = sizeof tasks / sizeof *tasks };

/* The first task that is left; of tasks that need no memory bandwidth where `spare` is set and there are some. */
static struct task* next_task(int spare) {
  struct task* first = NULL;
  for (int i = 0; i < kTasks; ++i) {
    if (!tasks[i].is_done && (!spare || !tasks[i].needs_memory)) return &tasks[i];
    if (!tasks[i].is_done && first == NULL) first = &tasks[i];
  }
  return first;
}

int main(void) {
  elbow_guard* guard = elbow_guard_open(NULL);
  if (guard == NULL) printf("tasks in their order: %s\n", elbow_guard_error());
  for (struct task* task; (task = next_task(elbow_guard_pressure(guard) > 0.5)) != NULL; task->is_done = 1) {
    task->work();
  }
  elbow_guard_close(guard);
  return 0;
}

/* Time of COUNT tasks with a codelet that spins for SPIN ns, on WORKERS workers: submitted and waited for, ROUNDS times. DATA:
 * each task uses so many of 64 pieces of data, the first of them written. Prints ns of each round. */
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void spin(void* buffers[], void* argument) {
  (void)buffers;
  const long long until = *(const long long*)argument;
  if (until > 0) {
    for (const long long end = now() + until; now() < end;) {
    }
  }
}

static struct starpu_codelet codelet = {.cpu_funcs = {spin}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "spin"};

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s WORKERS COUNT DATA SPIN ROUNDS\n", argv[0]);
    return 2;
  }
  const int workers = atoi(argv[1]), count = atoi(argv[2]), data = atoi(argv[3]), rounds = atoi(argv[5]);
  static long long length;
  length = atoll(argv[4]);
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = workers;
  conf.nopencl = 0;
  if (starpu_init(&conf) != 0) {
    return 1;
  }
  enum { kPieces = 64 };
  static int values[kPieces];
  starpu_data_handle_t handles[kPieces];
  for (int i = 0; i < kPieces; ++i) {
    starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&values[i], sizeof(int));
  }
  for (int round = 0; round < rounds; ++round) {
    const long long begun = now();
    for (int i = 0; i < count; ++i) {
      struct starpu_task* task = starpu_task_create();
      task->cl = &codelet;
      task->cl_arg = &length;
      task->nbuffers = data;
      for (int j = 0; j < data; ++j) {
        task->handles[j] = handles[(i + 7 * j) % kPieces];
        task->modes[j] = j == 0 ? STARPU_RW : STARPU_R;
      }
      if (starpu_task_submit(task) != 0) {
        return 1;
      }
    }
    starpu_task_wait_for_all();
    printf("%lld\n", now() - begun);
  }
  for (int i = 0; i < kPieces; ++i) {
    starpu_data_unregister(handles[i]);
  }
  starpu_shutdown();
  return 0;
}

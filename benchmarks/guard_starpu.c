/* A StarPU graph of memory- and compute-bound tasks beside bursts of 64 MiB messages, in two processes. Rank 0 has a worker on
 * each of two cores; its main thread receives, on core 1, and does the copying. Rank 1 only sends. Each step has MEMORY tasks
 * that read memory and need nothing, and MESSAGES messages; each message that is there lets its part of a chain of CHAIN
 * compute-bound tasks begin. The step ends when all tasks are over.
 *
 * Orders: in the "site"'s all memory-bound tasks are submitted where the step begins. In the "best" one, each of them is submitted
 * where one before it ends, two at a time: so the chain never waits for more than the tasks that run, and no worker for tasks. A
 * number is a setting of the lever under which the site's order runs, on the board of ELBOW_GUARD. Blocks of STEPS steps under
 * each ARM take turns, in random order, ROUNDS times; prints a line for each block: its arm, s a step, and s of its messages.
 * LINES and PRODUCTS are the sizes of the tasks, in lines of a cache and in operations; without arguments, those of tasks that
 * take 1 ms are printed, and the s of a message. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <starpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "elbowroom/guard.h"

enum { kMessage = 64 << 20, kData = 32 << 20, kLine = 8, kMostArms = 16, kLever = 1, kReceiver = 1 };

static double* data;
static long lines = 100000, products = 100000;
static double chained; /* by the tasks of the chain */
static starpu_data_handle_t chain;
static volatile double sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void run_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

/* On large pages: with small ones, looking up addresses takes most of the time of either side. */
static void* make_huge(size_t bytes) {
  void* memory = aligned_alloc(2 << 20, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 1, bytes);
#ifdef MADV_COLLAPSE
  madvise(memory, bytes, MADV_COLLAPSE); /* where none were free before */
#endif
  return memory;
}

/* One number of each cache line, of the next part of a half of the data. */
static void sum_up(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  static _Thread_local size_t at = 0;
  const double* half = data + (size_t)(starpu_worker_get_id() % 2) * (kData / 2);
  double one = 0, two = 0, three = 0, four = 0;
  for (long i = 0; i < lines; i += 4, at += 4 * kLine) {
    if (at + 4 * kLine > kData / 2) at = 0;
    one += half[at];
    two += half[at + kLine];
    three += half[at + 2 * kLine];
    four += half[at + 3 * kLine];
  }
  sink = one + two + three + four;
}

static void multiply(void* buffers[], void* argument) {
  (void)argument;
  double* const number = (double*)STARPU_VARIABLE_GET_PTR(buffers[0]);
  double x = *number;
  for (long i = 0; i < products; ++i) x = x * 0.9999999 + 1e-9;
  *number = x;
}

static struct starpu_codelet memory = {.cpu_funcs = {sum_up}, .nbuffers = 0, .name = "sum_up"};
static struct starpu_codelet compute = {
    .cpu_funcs = {multiply}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "multiply"};

static void submit_one(struct starpu_codelet* codelet, void (*callback)(void*)) {
  struct starpu_task* task = starpu_task_create();
  task->cl = codelet;
  task->callback_func = callback;
  if (codelet->nbuffers > 0) task->handles[0] = chain;
  if (starpu_task_submit(task) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void submit(struct starpu_codelet* codelet, int count) {
  for (int i = 0; i < count; ++i) submit_one(codelet, NULL);
}

static atomic_int left; /* memory-bound tasks of the best order that are not submitted */

static void submit_next(void* unused) {
  (void)unused;
  if (atomic_fetch_sub(&left, 1) > 0) submit_one(&memory, submit_next);
}

/* So many iterations that a task takes 1 ms where it runs alone. */
static void size_tasks(struct starpu_codelet* codelet, long* iterations) {
  enum { kTasks = 30 };
  const double workers = codelet->nbuffers > 0 ? 1 : starpu_cpu_worker_get_count();
  for (int turn = 0; turn < 3; ++turn) {
    const double begin = now();
    submit(codelet, kTasks);
    starpu_task_wait_for_all();
    *iterations = (long)(*iterations * 1e-3 * kTasks / workers / (now() - begin)) + 1;
  }
}

/* Others use the core meanwhile. */
static void wait_for(int count, MPI_Request* requests) {
  const struct timespec nap = {0, 100000};
  for (int done = 0; !done;) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (!done) nanosleep(&nap, NULL);
  }
}

/* Rank 1's part of a step: its messages, once rank 0 asks for them. */
static void send_all(char* buffer, int messages) {
  MPI_Request requests[messages + 1];
  MPI_Pcontrol(1);
  MPI_Irecv(NULL, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD, requests);
  wait_for(1, requests);
  for (int i = 0; i < messages; ++i) {
    MPI_Isend(buffer + (size_t)(i % 2) * kMessage, kMessage, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[i]);
  }
  wait_for(messages, requests);
}

/* The part `part` of `parts` of `count`. */
static int part_of(int count, int part, int parts) { return count * (part + 1) / parts - count * part / parts; }

/* The duration of a step of rank 0; that of its messages is added to `moving`. */
static double step(int best, int memories, int chains, int messages, char* buffer, double* moving) {
  const double begin = now();
  MPI_Pcontrol(1);
  MPI_Send(NULL, 0, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (best) {
    left = memories;
    for (int worker = 0; worker < 2; ++worker) submit_next(NULL);
  } else {
    submit(&memory, memories);
  }
  for (int i = 0; i < messages; ++i) {
    char* const place = buffer + (size_t)(i % 2) * kMessage;
    MPI_Recv(place, kMessage, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    submit(&compute, part_of(chains, i, messages));
  }
  *moving += now() - begin;
  if (messages == 0) submit(&compute, chains);
  starpu_task_wait_for_all();
  return now() - begin;
}

static void start_starpu(void) {
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = 2;
  conf.nopencl = conf.ncuda = 0;
  conf.use_explicit_workers_bindid = 1;
  for (int worker = 0; worker < 2; ++worker) conf.workers_bindid[worker] = worker;
  if (starpu_init(&conf) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  run_on(kReceiver);
  data = make_huge(kData * sizeof *data);
  starpu_variable_data_register(&chain, STARPU_MAIN_RAM, (uintptr_t)&chained, sizeof chained);
}

static void stop_starpu(void) {
  starpu_data_unregister(chain);
  starpu_shutdown();
}

static void print_sizes(char* buffer) {
  enum { kTrial = 6 };
  double moving = 0;
  size_tasks(&memory, &lines);
  size_tasks(&compute, &products);
  step(0, 0, 0, kTrial, buffer, &moving);
  printf("%ld %ld %.6f\n", lines, products, moving / kTrial);
}

/* Blocks of steps under each arm, in turns. */
static void run_arms(int memories, int chains, int messages, int steps, int rounds, int arms, char** names,
                     char* buffer) {
  elbow_guard* guard = elbow_guard_open(NULL);
  for (int round = 0; round < rounds; ++round) {
    int order[kMostArms];
    for (int i = 0; i < arms; ++i) {
      const int j = rand() % (i + 1);
      order[i] = order[j];
      order[j] = i;
    }
    for (int i = 0; i < arms; ++i) {
      const char* const arm = names[order[i]];
      if (arms > 1 && guard != NULL) elbow_guard_set(guard, kLever, strtoul(arm, NULL, 10));
      double seconds = 0, moving = 0;
      const int best = strcmp(arm, "best") == 0;
      for (int s = 0; s < steps; ++s) seconds += step(best, memories, chains, messages, buffer, &moving);
      printf("%s %.6f %.6f\n", arm, seconds / steps, moving / steps);
      fflush(stdout);
    }
  }
  elbow_guard_close(guard);
}

int main(int argc, char** argv) {
  int given = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int arms = argc - 8;
  if (argc != 1 && (arms < 1 || arms > kMostArms)) {
    fprintf(stderr, "usage: %s [LINES PRODUCTS MEMORY CHAIN MESSAGES STEPS ROUNDS ARM ...]\n", argv[0]);
    return 2;
  }
  const int sizes = argc == 1;
  const int messages = sizes ? 6 : atoi(argv[5]), steps = sizes ? 1 : atoi(argv[6]), rounds = sizes ? 1 : atoi(argv[7]);
  char* buffer = make_huge(2 * (size_t)kMessage);
  if (rank == 1) {
    for (long i = 0; i < (sizes ? 1 : (long)rounds * arms * steps); ++i) send_all(buffer, messages);
  } else {
    start_starpu();
    if (sizes) {
      print_sizes(buffer);
    } else {
      lines = atol(argv[1]);
      products = atol(argv[2]);
      run_arms(atoi(argv[3]), atoi(argv[4]), messages, steps, rounds, arms, argv + 8, buffer);
    }
    stop_starpu();
  }
  MPI_Finalize();
  return 0;
}

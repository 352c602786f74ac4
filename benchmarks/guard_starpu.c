/* A StarPU graph of memory- and compute-bound tasks beside bursts of 64 MiB messages, in two processes: rank 0 has one worker
 * on core 0 and sends, rank 1 receives on core 1, and does the copying. Each step has TASKS tasks of either kind (1 ms each
 * where they run alone) and, unless MESSAGES is 0, so many messages as take TASKS ms alone; it ends when both are over.
 *
 * Blocks of STEPS steps take turns, in random order, ROUNDS times: the memory-bound tasks are submitted first ("site"), the
 * compute-bound ones ("best"), and, on the board of ELBOW_GUARD, the memory-bound ones again under each SETTING of the lever.
 * Prints a line for each block: its arm, s a step, and s of its messages. TASKS of 0: there is nothing to gain, all tasks are compute-bound. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "elbowroom/guard.h"

enum { kMessage = 64 << 20, kData = 32 << 20, kLine = 8, kMostArms = 16, kLever = 1 };

static double* data;
static long lines = 100000, products = 100000;
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

/* One number of each cache line, of the next part of the data. */
static void sum_up(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  static size_t at = 0;
  double one = 0, two = 0, three = 0, four = 0;
  for (long i = 0; i < lines; i += 4, at += 4 * kLine) {
    if (at + 4 * kLine > kData) at = 0;
    one += data[at];
    two += data[at + kLine];
    three += data[at + 2 * kLine];
    four += data[at + 3 * kLine];
  }
  sink = one + two + three + four;
}

static void multiply(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  double x = 1.0001;
  for (long i = 0; i < products; ++i) x = x * 1.0000001 + 1e-9;
  sink = x;
}

static struct starpu_codelet memory = {.cpu_funcs = {sum_up}, .nbuffers = 0, .name = "sum_up"};
static struct starpu_codelet compute = {.cpu_funcs = {multiply}, .nbuffers = 0, .name = "multiply"};

static void submit(struct starpu_codelet* codelet, int count) {
  for (int i = 0; i < count; ++i) {
    struct starpu_task* task = starpu_task_create();
    task->cl = codelet;
    if (starpu_task_submit(task) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* So many iterations that a task takes 1 ms. */
static void size_tasks(struct starpu_codelet* codelet, long* iterations) {
  enum { kTasks = 30 };
  for (int turn = 0; turn < 3; ++turn) {
    const double begin = now();
    submit(codelet, kTasks);
    starpu_task_wait_for_all();
    *iterations = (long)(*iterations * 1e-3 * kTasks / (now() - begin)) + 1;
  }
}

static void receive_all(char* buffer, long messages) {
  for (long i = 0; i < messages; ++i) {
    MPI_Recv(buffer + (size_t)(i % 2) * kMessage, kMessage, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void send_all(char* buffer, int messages) {
  MPI_Request requests[messages + 1];
  for (int i = 0; i < messages; ++i) {
    MPI_Isend(buffer + (size_t)(i % 2) * kMessage, kMessage, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]);
  }
  /* Core 1 is the receiver's. */
  const struct timespec nap = {0, 200000};
  for (int done = 0; !done;) {
    MPI_Testall(messages, requests, &done, MPI_STATUSES_IGNORE);
    if (!done) nanosleep(&nap, NULL);
  }
}

/* How many messages take as long as a step's tasks of one kind, on both ranks. */
static int size_burst(int rank, int tasks, char* buffer) {
  enum { kTrial = 6 };
  int messages = 0;
  const double begin = now();
  if (rank == 1) {
    receive_all(buffer, kTrial);
  } else {
    send_all(buffer, kTrial);
    messages = (int)(tasks * 1e-3 * kTrial / (now() - begin) + 0.5);
    messages = messages < 1 ? 1 : messages;
  }
  MPI_Bcast(&messages, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return messages;
}

/* Its duration; that of its messages is added to `moving`. */
static double step(int compute_first, int tasks, int messages, char* buffer, double* moving) {
  const double begin = now();
  MPI_Pcontrol(1);
  submit(compute_first ? &compute : &memory, tasks);
  submit(compute_first ? &memory : &compute, tasks);
  const double sent = now();
  send_all(buffer, messages);
  *moving += now() - sent;
  starpu_task_wait_for_all();
  return now() - begin;
}

int main(int argc, char** argv) {
  int given = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int arms = argc - 5 + 2;
  if (argc < 5 || arms > kMostArms) {
    fprintf(stderr, "usage: %s TASKS MESSAGES STEPS ROUNDS [SETTING ...]\n", argv[0]);
    return 2;
  }
  const int tasks = atoi(argv[1]), steps = atoi(argv[3]), rounds = atoi(argv[4]);
  char* buffer = make_huge(2 * (size_t)kMessage);
  run_on(1);
  int messages = atoi(argv[2]);
  if (messages != 0) messages = size_burst(rank, tasks, buffer);
  if (rank == 1) {
    receive_all(buffer, (long)rounds * arms * steps * messages);
    MPI_Finalize();
    return 0;
  }
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = 1;
  conf.nopencl = conf.ncuda = 0;
  conf.use_explicit_workers_bindid = 1;
  conf.workers_bindid[0] = 0;
  run_on(0); /* StarPU takes the cores that it may use */
  if (starpu_init(&conf) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  run_on(1);
  elbow_guard* guard = elbow_guard_open(NULL);
  data = make_huge(kData * sizeof *data);
  size_tasks(&memory, &lines);
  size_tasks(&compute, &products);
  for (int round = 0; round < rounds; ++round) {
    int order[kMostArms];
    for (int i = 0; i < arms; ++i) {
      const int j = rand() % (i + 1);
      order[i] = order[j];
      order[j] = i;
    }
    for (int i = 0; i < arms; ++i) {
      const int arm = order[i];
      if (guard != NULL) elbow_guard_set(guard, kLever, arm < 2 ? 0 : strtoul(argv[arm + 3], NULL, 10));
      double seconds = 0, moving = 0;
      for (int s = 0; s < steps; ++s) seconds += step(arm == 1, tasks, messages, buffer, &moving);
      printf("%s %.6f %.6f\n", arm == 0 ? "site" : arm == 1 ? "best" : argv[arm + 3], seconds / steps, moving / steps);
      fflush(stdout);
    }
  }
  elbow_guard_close(guard);
  starpu_shutdown();
  MPI_Finalize();
  return 0;
}

/* What programs of benchmarks/trace.py share: threads that record so many events in each of some rounds, together.
 *
 * A program defines, before it includes this file, `static inline void record_one(unsigned small, unsigned long first,
 * unsigned long second)`, and after it `begin_thread(number)` and `between_rounds()`; it hands over to `measure`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 64, MOST_ROUNDS = 1000 };

static void begin_thread(int number);
static void between_rounds(void);

static struct {
  int events;
  int rounds;
  int threads;
  pthread_barrier_t together;
  double cpu_ns[MOST_THREADS][MOST_ROUNDS]; /* of one event */
} job;

static double cpu_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void* run_thread(void* number_as_pointer) {
  const int number = (int)(long)number_as_pointer;
  begin_thread(number);
  for (int round = 0; round < job.rounds; ++round) {
    pthread_barrier_wait(&job.together);
    const double begun = cpu_now();
    for (int i = 0; i < job.events; ++i) {
      record_one((unsigned)number, (unsigned long)i, (unsigned long)round);
    }
    job.cpu_ns[number][round] = (cpu_now() - begun) / job.events;
    pthread_barrier_wait(&job.together);
    if (number == 0) {
      between_rounds();
    }
  }
  return NULL;
}

/* Prints the CPU time of one event, ns, of all threads in all rounds but the first, which warms caches up, as a JSON array. */
static int measure(int threads, int rounds, int events) {
  pthread_t handles[MOST_THREADS];
  if (threads < 1 || threads > MOST_THREADS || rounds < 2 || rounds > MOST_ROUNDS || events < 1) {
    fprintf(stderr, "give 1 to %d threads, 2 to %d rounds, 1 event or more\n", MOST_THREADS, MOST_ROUNDS);
    return 2;
  }
  job.threads = threads;
  job.rounds = rounds;
  job.events = events;
  pthread_barrier_init(&job.together, NULL, (unsigned)threads);
  for (long number = 1; number < threads; ++number) {
    pthread_create(&handles[number], NULL, run_thread, (void*)number);
  }
  run_thread((void*)0);
  for (int number = 1; number < threads; ++number) {
    pthread_join(handles[number], NULL);
  }
  for (int number = 0; number < threads; ++number) {
    for (int round = 1; round < rounds; ++round) {
      printf("%s%.4f", number == 0 && round == 1 ? "[" : ", ", job.cpu_ns[number][round]);
    }
  }
  printf("]\n");
  return 0;
}

static int argument(int argc, char** argv, int which, int otherwise) {
  return argc > which ? atoi(argv[which]) : otherwise;
}

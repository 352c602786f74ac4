// Steps of two ranks that compute and exchange a message, in setups that really differ: benchmarks/what_if.py.
//
//   what_if STEPS BYTES DOUBLES FLOPS CORES OVERLAP
//
// The first thread of a rank communicates, the other one computes: over DOUBLES values, FLOPS operations for each. With
// 2 CORES rank r has core r for both; with 1 both ranks compute on core 1 and communicate on core 0. OVERLAP 1: at the
// same time. Prints the mean time of a step, in which both ranks have ended.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static double* values;
static long count, flops;
static int asked, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void bind_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void compute(void) {
  for (long i = 0; i < count; ++i) {
    double x = values[i];
    for (long k = 0; k < flops; ++k) {
      x = x * 0.999 + 0.001;
    }
    values[i] = x;
  }
}

static void until(const int* what, int value) {
  pthread_mutex_lock(&lock);
  while (*what < value) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
}

static void set(int* what, int value) {
  pthread_mutex_lock(&lock);
  *what = value;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void* worker(void* core) {
  bind_to(*(int*)core);
  for (int step = 1;; ++step) {
    until(&asked, step);
    compute();
    set(&done, step);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int level, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 7) {
    return 2;
  }
  const int steps = atoi(argv[1]), bytes = atoi(argv[2]), cores = atoi(argv[5]), overlap = atoi(argv[6]);
  count = atol(argv[3]);
  flops = atol(argv[4]);
  values = calloc(count, sizeof *values);
  char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
  int own = cores == 2 ? rank : 1;
  bind_to(cores == 2 ? rank : 0);
  pthread_t thread;
  pthread_create(&thread, NULL, worker, &own);
  double begin = 0;
  for (int step = 1; step <= steps + 2; ++step) {
    if (step == 3) {
      begin = MPI_Wtime();
    }
    set(&asked, step);
    if (!overlap) {
      until(&done, step);
    }
    MPI_Request both[2];
    MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    until(&done, step);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) {
    printf("step %.6g s\n", (MPI_Wtime() - begin) / steps);
  }
  MPI_Finalize();
  return 0;
}

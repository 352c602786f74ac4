/* A helper thread polls on the core of its rank, for a share `size` of the time. Repaired: it sleeps between two looks.
 * The rank binds itself to a core, if nobody did. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "zoo.h"

static atomic_int ended;
static double share;

static void sleep_for(double seconds) {
  const struct timespec time = {0, (long)(1e9 * seconds)};
  nanosleep(&time, NULL);
}

static void* poll(void* unused) {
  const double period = 2e-3;
  while (!ended) {
    const double begin = MPI_Wtime();
    while (!ended && MPI_Wtime() - begin < period * share) continue;
    if (share < 1) sleep_for(period * (1 - share));
  }
  return unused;
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  pthread_t thread;
  char out[4096] = {0}, in[4096];
  zoo_bind_to_one_core(zoo.rank);
  share = zoo.repaired ? 1e-3 : zoo.size >= 0.5 ? 1 : zoo.size;
  pthread_create(&thread, NULL, poll, NULL);
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step);
    zoo_ring(&zoo, out, in, sizeof out);
  }
  ended = 1;
  pthread_join(thread, NULL);
  if (!zoo.repaired) zoo.expected = zoo.size * (MPI_Wtime() - zoo.begin);
  return zoo_end(&zoo);
}

// Preloaded into programs of an emulated machine: who yields while it waits, sleeps. Emulated cores are threads on fewer
// real ones, and one that only polls takes the time of the one that it waits for.
#include <time.h>

int sched_yield(void) {
  const struct timespec pause = {0, 1000000};
  nanosleep(&pause, 0);
  return 0;
}

/* stopper PID LENGTH_US PERIOD_US SECONDS stops a process again and again, and prints each stop in ns, begin and end.
   stopper SECONDS reads the clock all the time, and prints when it was kept from it for 300 us or more: what a stopped
   process notices of its stops. In C, since a process goes on only when the stopper leaves its core after SIGCONT. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long when) {
  struct timespec t = {when / 1000000000LL, when % 1000000000LL};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
  }
}

enum { most = 100000 };
static long long begins[most], ends[most];

static int print(int count) {
  for (int i = 0; i < count; ++i) {
    printf("%lld %lld\n", begins[i], ends[i]);
  }
  return 0;
}

static int watch(double seconds) {
  const long long last = now() + (long long)(seconds * 1e9);
  int count = 0;
  for (long long before = now(), here; before < last && count < most; before = here) {
    here = now();
    if (here - before >= 300000) {
      begins[count] = before;
      ends[count++] = here;
    }
  }
  return print(count);
}

int main(int argc, char** argv) {
  if (argc == 2) {
    return watch(atof(argv[1]));
  }
  if (argc != 5) {
    return 2;
  }
  const int process = atoi(argv[1]);
  const long long length = atoll(argv[2]) * 1000, period = atoll(argv[3]) * 1000;
  const long long first = now(), last = first + (long long)(atof(argv[4]) * 1e9);
  int count = 0;
  for (long long due = first + period; due < last && count < most; due += period, ++count) {
    sleep_until(due);
    kill(process, SIGSTOP);
    begins[count] = now();
    sleep_until(begins[count] + length);
    ends[count] = now();
    if (kill(process, SIGCONT) != 0) {
      return 1;
    }
  }
  return print(count);
}

/* FxT, as a program that is traced uses it: benchmark_fxt FILE [threads] [rounds] [events]. Its buffer is of all threads; it
 * is taken back between rounds, so that nothing is ever written while events are timed, and its pages are there. */
#define CONFIG_FUT
#include <fxt/fut.h>
#include <fxt/fxt.h>
#include <unistd.h>

static inline void record_one(unsigned small, unsigned long first, unsigned long second) {
  FUT_DO_PROBE3(0x1234, small, first, second);
}

#include "loop.h"

static void begin_thread(int number) { (void)number; }

static void between_rounds(void) { fut_reset(1, (unsigned)getpid()); }

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "benchmark_fxt FILE [threads] [rounds] [events]\n");
    return 2;
  }
  const int threads = argument(argc, argv, 2, 1);
  const int events = argument(argc, argv, 4, 100000);
  fut_set_filename(argv[1]);
  /* In numbers of the size of a long: 8 of them are more than an event takes. */
  if (fut_setup((uint64_t)threads * (uint64_t)events * 8 + 4096, 1, (unsigned)getpid()) < 0) {
    fprintf(stderr, "FxT cannot make its buffer\n");
    return 1;
  }
  return measure(threads, argument(argc, argv, 3, 40), events);
}

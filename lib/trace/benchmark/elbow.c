/* elbow_trace: benchmark_elbow DIRECTORY on|off [threads] [rounds] [events]; ELBOW_CLOCK=raw for the kernel's clock. Compiled
 * with CLOCK_ALONE (benchmark_clock) nothing but the clock is read. */
#include <string.h>

#include "elbowroom/trace.h"

static const elbow_trace_type* type;

static inline void record_one(unsigned small, unsigned long first, unsigned long second) {
#ifdef CLOCK_ALONE
  (void)small, (void)first, (void)second;
  const uint64_t time = elbow_trace_time(elbow_trace_own);
  __asm__ volatile("" ::"r"(time)); /* so that it is read */
#else
  elbow_trace_event(type, small, first, second);
#endif
}

#include "loop.h"

static void begin_thread(int number) {
  (void)number;
  elbow_trace_thread(NULL);
}

static void between_rounds(void) {}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "benchmark_elbow DIRECTORY on|off [threads] [rounds] [events]\n");
    return 2;
  }
  /* Rings of the size that is the default, which go round. */
  elbow_trace_settings settings = {.size = sizeof settings, .directory = argv[1], .policy = ELBOW_TRACE_OVERWRITE};
  if (elbow_trace_start(&settings) != 0) {
    fprintf(stderr, "%s\n", elbow_trace_error());
    return 1;
  }
  type = elbow_trace_type_new("event", elbow_trace_category("category"), "small", "first", "second");
  if (strcmp(argv[2], "off") == 0) {
    elbow_trace_set_mask(0);
  }
  const int result = measure(argument(argc, argv, 3, 1), argument(argc, argv, 4, 40), argument(argc, argv, 5, 100000));
  return elbow_trace_stop(NULL) != 0 ? 1 : result;
}

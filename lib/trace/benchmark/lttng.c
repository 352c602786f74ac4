/* LTTng-UST: benchmark_lttng [threads] [rounds] [events], in a session that records elbow_benchmark:event. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

static inline void record_one(unsigned small, unsigned long first, unsigned long second) {
  lttng_ust_tracepoint(elbow_benchmark, event, small, first, second);
}

#include "loop.h"

static void begin_thread(int number) { (void)number; }

static void between_rounds(void) {}

int main(int argc, char** argv) {
  if (!lttng_ust_tracepoint_enabled(elbow_benchmark, event)) {
    fprintf(stderr, "no session records elbow_benchmark:event\n");
    return 1;
  }
  return measure(argument(argc, argv, 1, 1), argument(argc, argv, 2, 40), argument(argc, argv, 3, 100000));
}

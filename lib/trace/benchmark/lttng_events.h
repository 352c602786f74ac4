/* LTTng's description of an event with the fields of ours. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER elbow_benchmark
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"

#if !defined(ELBOW_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define ELBOW_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(elbow_benchmark, event,
                           LTTNG_UST_TP_ARGS(uint32_t, small, uint64_t, first, uint64_t, second),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, small, small)
                                                   lttng_ust_field_integer(uint64_t, first, first)
                                                       lttng_ust_field_integer(uint64_t, second, second)))
#endif

#include <lttng/tracepoint-event.h>

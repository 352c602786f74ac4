// What a program's own code becomes where it records: the object of this file is disassembled by probe_test.
#include "elbowroom/trace.h"

extern "C" void probe_emit(const elbow_trace_type* type, uint32_t small, uint64_t first, uint64_t second) {
  elbow_trace_event(type, small, first, second);
}

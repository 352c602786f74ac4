// libFuzzer: any bytes as a process's file of lines, and the correction that its sync points make.
#include <cstddef>
#include <cstdint>

#include "trace/merge/times.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace elbowroom::trace;
  try {
    const RankLines lines = read_lines({reinterpret_cast<const char*>(data), size}, "lines");
    const RankTimes times(lines.syncs, false);
    const StampRange range = stamps_of(lines.clock, lines.end ? lines.end->end_ns : 0);
    std::int64_t before = times.at(times.local(lines.clock, range.least)).time;
    for (const std::uint64_t part : {4, 2, 1}) {
      const std::int64_t now = times.at(times.local(lines.clock, range.least + (range.most - range.least) / part)).time;
      if (now < before) {
        __builtin_trap();
      }
      before = now;
    }
  } catch (const Refused&) {
    return 0;
  }
  return 0;
}

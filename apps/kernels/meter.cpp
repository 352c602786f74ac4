#include "kernels/meter.hpp"

#include <linux/perf_event.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "machine/machine.hpp"

namespace elbowroom::kernels {

double under_way(std::vector<Send> sends) {
  std::sort(sends.begin(), sends.end(), [](const Send& one, const Send& other) { return one.ready < other.ready; });
  std::int64_t sum = 0;
  std::int64_t until = 0;
  for (const Send& send : sends) {
    const std::int64_t from = std::max(send.ready, until);
    sum += std::max<std::int64_t>(send.done - from, 0);
    until = std::max(until, send.done);
  }
  return static_cast<double>(sum) * 1e-9;
}

// A counter counts for the thread that opens it.
void Meter::begin(Slot& slot, int core) {
  if (!slot.opened) {
    slot.opened = true;
    slot.counters.emplace_back(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
    for (const ProcessorEvent& event : stalls_) {
      slot.counters.emplace_back(PERF_TYPE_RAW, event.config, false);
    }
    const auto works = [](const Counter& counter) { return counter.works(); };
    if (stalls_.empty() || !std::all_of(slot.counters.begin(), slot.counters.end(), works)) {
      slot.counters.clear();
    }
  }
  const CoreInfo* here = Machine::here().core(sched_getcpu());
  slot.strayed = slot.strayed || here == nullptr || here->number != core;
}

void Meter::count(Slot& slot, double sign) {
  for (std::size_t i = 0; i < slot.counters.size(); ++i) {
    slot.counted[i == 0 ? 0 : 1] += sign * slot.counters[i].read().value_or(0);
  }
}

void Meter::sent(const Send& send, bool counted) {
  ++tally_.messages;
  tally_.bytes += send.bytes;
  if (counted) {
    tally_.sends.push_back(send);
  }
}

Tally Meter::take() {
  double counted[2] = {0, 0};
  for (Slot& slot : slots_) {
    tally_.product_s += static_cast<double>(std::exchange(slot.ns[0], 0)) * 1e-9;
    tally_.vector_s += static_cast<double>(std::exchange(slot.ns[1], 0)) * 1e-9;
    tally_.tasks += std::exchange(slot.tasks, 0);
    counted[0] += std::exchange(slot.counted[0], 0);
    counted[1] += std::exchange(slot.counted[1], 0);
  }
  if (counted[0] > 0) {
    tally_.stalled = counted[1] / counted[0];
  }
  return std::exchange(tally_, Tally{});
}

bool Meter::strayed() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.strayed; });
}

}  // namespace elbowroom::kernels

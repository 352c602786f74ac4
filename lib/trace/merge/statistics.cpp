#include "trace/merge/statistics.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

constexpr std::size_t kDeepest = 1024;  // events that a thread has begun: more are not ended, ever

}  // namespace

Statistics::Statistics(const MergedJob& job, std::int64_t duration, std::size_t bins)
    : job_(job),
      bins_(bins),
      categories_(job.categories.size()),
      types_(job.types.size()),
      by_rank_(job.ranks.size() * job.categories.size(), 0),
      begun_(job.threads.size()) {
  if (bins > 0) {
    // The last moment belongs to the last bin.
    bin_ns_ = duration / static_cast<std::int64_t>(bins) + 1;
    for (TypeCounts& type : types_) {
      type.bins.assign(bins, 0);
    }
  }
}

void Statistics::see(const MergedEvent& event) {
  TypeCounts& counts = types_[event.type];
  ++counts.events;
  ++by_rank_[job_.threads[event.thread].rank * categories_ + job_.types[event.type].category];
  if (bins_ > 0) {
    ++counts.bins[std::min(static_cast<std::size_t>(event.time / bin_ns_), bins_ - 1)];
  }
  if (event.kind == ELBOW_TRACE_BEGIN) {
    ++counts.begins;
    std::vector<Begun>& begun = begun_[event.thread];
    if (begun.size() == kDeepest) {
      begun.erase(begun.begin());
    }
    begun.push_back({event.type, event.time});
  } else if (event.kind == ELBOW_TRACE_END) {
    ++counts.ends;
    end(event, counts);
  }
}

// Ends the thread's last begun event of that type; those begun since have no end.
void Statistics::end(const MergedEvent& event, TypeCounts& counts) {
  std::vector<Begun>& begun = begun_[event.thread];
  for (std::size_t i = begun.size(); i-- > 0;) {
    if (begun[i].type == event.type) {
      counts.total_ns += static_cast<std::uint64_t>(event.time - begun[i].time);
      begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

}  // namespace elbowroom::trace

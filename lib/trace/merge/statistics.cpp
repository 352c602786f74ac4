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
  for (const MergedType& type : job.types) {
    const auto field = std::find(type.fields.begin(), type.fields.end(), "bytes");
    bytes_field_.push_back(field == type.fields.end() ? -1 : static_cast<int>(field - type.fields.begin()));
  }
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
  counts.bytes += bytes_of(event);
  if (event.kind == ELBOW_TRACE_BEGIN) {
    begin(event, counts);
  } else if (event.kind == ELBOW_TRACE_END) {
    ++counts.ends;
    end(event, counts);
  }
}

std::uint64_t Statistics::bytes_of(const MergedEvent& event) const {
  switch (event.kind) {
    case ELBOW_TRACE_SEND:
    case ELBOW_TRACE_RECEIVE: return event.second;
    case ELBOW_TRACE_BEGIN:
    case ELBOW_TRACE_EVENT: break;
    default: return 0;
  }
  switch (bytes_field_[event.type]) {
    case 0: return event.small;
    case 1: return event.first;
    case 2: return event.second;
    default: return 0;
  }
}

void Statistics::begin(const MergedEvent& event, TypeCounts& counts) {
  ++counts.begins;
  std::vector<Begun>& begun = begun_[event.thread];
  if (begun.size() == kDeepest) {
    begun.erase(begun.begin());
  }
  begun.push_back({event.type, event.time});
}

// Ends the thread's last begun event of that type; those begun since have no end.
void Statistics::end(const MergedEvent& event, TypeCounts& counts) {
  std::vector<Begun>& begun = begun_[event.thread];
  for (std::size_t i = begun.size(); i-- > 0;) {
    if (begun[i].type == event.type) {
      const auto lasted = static_cast<std::uint64_t>(event.time - begun[i].time);
      counts.total_ns += lasted;
      counts.longest_ns = std::max(counts.longest_ns, lasted);
      ++counts.whole;
      begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

}  // namespace elbowroom::trace

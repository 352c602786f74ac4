#include "trace/outputs/spans.hpp"

namespace elbowroom::trace {

Spans::Spans(const MergedJob& job) : threads_(job.threads.size()) {
  for (const MergedType& type : job.types) {
    task_.push_back(job.categories[type.category] == "task");
  }
}

bool Spans::begin(const MergedEvent& event) {
  Thread& thread = threads_[event.thread];
  if (thread.open.size() >= kDeepestShown) {
    ++thread.too_deep;
    return false;
  }
  thread.open.push_back({event.type, event.small, event.first, event.second, event.time});
  return true;
}

std::ptrdiff_t Spans::ending(const MergedEvent& event) const {
  const Thread& thread = threads_[event.thread];
  if (thread.too_deep > 0) {
    return -1;
  }
  const auto count = static_cast<std::ptrdiff_t>(thread.open.size());
  for (std::ptrdiff_t which = 0; which < count; ++which) {
    const Span& span = thread.open[static_cast<std::size_t>(count - 1 - which)];
    if (span.type == event.type && (!task_[event.type] || span.first == event.first)) {
      return which;
    }
  }
  return -1;
}

void Spans::end(const MergedEvent& event, std::ptrdiff_t which) {
  Thread& thread = threads_[event.thread];
  if (which >= 0) {
    thread.open.erase(thread.open.end() - 1 - which);
  } else if (thread.too_deep > 0) {
    --thread.too_deep;
  }
}

}  // namespace elbowroom::trace

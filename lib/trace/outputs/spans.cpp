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

void Viewer::begin(const MergedJob& job) {
  job_ = &job;
  spans_.emplace(job);
}

void Viewer::event(const MergedEvent& e) {
  switch (e.kind) {
    case ELBOW_TRACE_BEGIN:
      if (spans_->begin(e)) {
        opens(e, open(e.thread).back(), false);
      } else {
        instant(e, "begin");
      }
      break;
    case ELBOW_TRACE_END: ends(e); break;
    case ELBOW_TRACE_COUNTER: counts(e); break;
    case ELBOW_TRACE_SEND:
    case ELBOW_TRACE_RECEIVE: message_end(e); break;
    default: instant(e, nullptr);
  }
}

void Viewer::ends(const MergedEvent& e) {
  const std::ptrdiff_t which = spans_->ending(e);
  if (which < 0) {
    spans_->end(e, which);
    instant(e, "end");
    return;
  }
  const std::vector<Span>& spans = open(e.thread);
  const std::size_t own = spans.size() - 1 - static_cast<std::size_t>(which);
  for (std::size_t i = spans.size() - 1; i > own; --i) {
    closes(e, spans[i], true);
  }
  closes(e, spans[own], false);
  spans_->end(e, which);
  for (std::size_t i = own; i < spans.size(); ++i) {
    opens(e, spans[i], true);
  }
}

}  // namespace elbowroom::trace

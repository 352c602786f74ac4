// What a recorder does with the rings: costs, the helper's work, the region of interest, the end.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "trace/lines.hpp"
#include "trace/recorder.hpp"

namespace elbowroom::trace {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr auto kUnfinished =
    std::chrono::milliseconds(20);                // how long events are waited for that are just being written
constexpr auto kAgain = std::chrono::seconds(1);  // after which a full disk or memory is tried again

}  // namespace

std::string described(const elbow_trace_summary& all) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "kept %llu events of %d threads, lost %llu; at most %llu waited in a ring of %llu; this run needs %.3g MiB "
      "per thread; recording took some %.3g ms (%.1f ns an event)",
      static_cast<unsigned long long>(all.kept), all.threads, static_cast<unsigned long long>(all.lost),
      static_cast<unsigned long long>(all.fullest), static_cast<unsigned long long>(all.capacity),
      static_cast<double>(all.advised) / (1U << 20), all.overhead_ns / 1e6, all.event_ns);
  std::string said = text;
  if (all.texts_lost > 0) {
    said += "; " + std::to_string(all.texts_lost) + " descriptive records did not fit: give more text_bytes";
  }
  if (all.refused_threads > 0) {
    said += "; " + std::to_string(all.refused_threads) +
            " threads got no ring and were not recorded: there is no room " + "in memory";
  }
  return said;
}

// The quickest of some batches, ns an event.
double Recorder::batch_ns(elbow_trace_ring& ring) const {
  constexpr int kEvents = 1024;
  elbow_trace_ring* const before = elbow_trace_own;
  elbow_trace_own = &ring;
  double least = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    const std::int64_t begun = now();
    for (int i = 0; i < kEvents; ++i) {
      elbow_trace_event(mask_type_, 0, static_cast<std::uint64_t>(i), 0);
    }
    least = std::min(least, static_cast<double>(now() - begun) / kEvents);
  }
  elbow_trace_own = before;
  return least;
}

EventCost Recorder::calibrated() {
  RingHeader header = header_of("calibration", -1);
  header.policy = ELBOW_TRACE_OVERWRITE;
  header.capacity = header.stored = 1024;
  header.ring.limit = ~0ULL;
  header.ring.wrap = header.capacity - 1;
  header.ring.shift = 10;
  Ring scratch(memory_ + "/calibration.ring", header);
  scratch.remove_file();
  const std::uint64_t mask = elbow_trace_mask();
  __atomic_store_n(&elbow_trace_recorded_categories, ~0ULL, __ATOMIC_RELAXED);
  EventCost cost;
  cost.kept = batch_ns(scratch.header().ring);
  scratch.close();
  cost.lost = batch_ns(scratch.header().ring);
  __atomic_store_n(&elbow_trace_recorded_categories, mask, __ATOMIC_RELAXED);
  return cost;
}

std::vector<Recorder::Thread*> Recorder::threads() {
  const std::lock_guard lock(mutex_);
  std::vector<Thread*> all;
  for (Thread& thread : threads_) {
    all.push_back(&thread);
  }
  return all;
}

void Recorder::failed(const std::string& why) {
  const std::lock_guard lock(trouble_mutex_);
  trouble_ = trouble_.empty() ? why : trouble_;
  not_before_ = steady_clock::now() + kAgain;
}

// An interval on the calling thread, which a timeline shows.
template <typename Work>
void Recorder::flush(const Thread& thread, Work work) {
  const auto number = static_cast<std::uint32_t>(thread.ring.header().thread);
  elbow_trace_begin(flush_type_, number, 0, 0);
  work();
  elbow_trace_end(flush_type_, number, 0, 0);
}

bool Recorder::drain() {
  bool any = false;
  for (Thread* thread : threads()) {
    if (thread->saved.is_due()) {
      flush(*thread, [&] { thread->saved.drain(); });
      any = true;
    }
  }
  return any;
}

// Every ring has room for so many events; by half as many again as it has at least, so that growing is rare.
bool Recorder::grow(std::uint64_t room) {
  bool any = false;
  for (Thread* thread : threads()) {
    Ring& ring = thread->ring;
    if (ring.room() < room) {
      flush(*thread, [&] { ring.grow(std::max(2 * room, ring.header().capacity / 2)); });
      any = true;
    }
  }
  return any;
}

bool Recorder::help() {
  if (steady_clock::now() < not_before_) {
    return false;
  }
  try {
    if (settings_.policy == ELBOW_TRACE_DRAIN) {
      return drain();
    }
    const std::lock_guard lock(growing_);
    return !inside_ && grow(settings_.bytes / sizeof(elbow_trace_slot) / 2);
  } catch (const Refusal& refusal) {
    failed(refusal.what());
    return false;
  }
}

// Rings that grow do so before the region begins: each has room for the bytes that were asked for, and none grows inside.
void Recorder::region(bool on) {
  const bool grows = settings_.policy == ELBOW_TRACE_GROW;
  if (grows && on) {
    const std::lock_guard lock(growing_);
    inside_ = true;
    helper_->hold(true);
    try {
      grow(settings_.bytes / sizeof(elbow_trace_slot));
    } catch (const Refusal& refusal) {
      failed(refusal.what());
    }
  }
  elbow_trace_write(region_type_, ELBOW_TRACE_REGION, on ? 1 : 0, 0, 0);
  if (grows && !on) {
    const std::lock_guard lock(growing_);
    inside_ = false;
    helper_->hold(false);
  }
}

elbow_trace_summary Recorder::added_up() {
  elbow_trace_summary all{};
  by_category_.assign(64, 0);
  for (const Thread& thread : threads_) {
    const RingHeader& header = thread.ring.header();
    all.recorded += thread.saved.recorded();
    all.kept += thread.saved.kept();
    if (thread.saved.fullest() >= all.fullest) {
      all.fullest = thread.saved.fullest();
      all.capacity = header.capacity;
    }
    all.texts_kept += header.texts;
    all.texts_lost += header.texts_lost;
    const std::vector<std::uint64_t>& kept = thread.saved.by_type();
    for (std::size_t type = 0; type < std::min(kept.size(), types_.size()); ++type) {
      by_category_[static_cast<std::size_t>(types_[type].category)] += kept[type];
    }
  }
  all.lost = all.recorded - all.kept;
  all.threads = static_cast<int>(threads_.size());
  all.refused_threads = refused_threads_;
  all.advised =
      static_cast<std::size_t>(std::bit_ceil(std::max<std::uint64_t>(all.fullest, 64))) * sizeof(elbow_trace_slot);
  all.event_ns = cost_.kept;
  all.overhead_ns = cost_.kept * static_cast<double>(all.kept) + cost_.lost * static_cast<double>(all.lost);
  return all;
}

void Recorder::append_end(const elbow_trace_summary& all) {
  json categories = json::array();
  for (std::size_t number = 0; number <= categories_.size(); ++number) {
    const bool own = number == categories_.size();  // the library's own come last
    const int category = own ? 63 : static_cast<int>(number);
    std::uint64_t events = 0;
    double overhead_ns = 0;
    cost(category, events, overhead_ns);
    categories.push_back({{"number", category},
                          {"name", own ? "trace" : categories_[number]},
                          {"events", events},
                          {"overhead_ns", overhead_ns}});
  }
  json types = json::array();
  for (const Type& type : types_) {
    std::uint64_t kept = 0;
    for (const Thread& thread : threads_) {
      const auto& counts = thread.saved.by_type();
      kept += type.handle.number < counts.size() ? counts[type.handle.number] : 0;
    }
    types.push_back({{"type", type.handle.number}, {"kept", kept}});
  }
  append_line(directory_ + "/" + stem_ + ".jsonl", {{"record", "end"},
                                                    {"recorded", all.recorded},
                                                    {"kept", all.kept},
                                                    {"lost", all.lost},
                                                    {"fullest", all.fullest},
                                                    {"capacity", all.capacity},
                                                    {"threads", all.threads},
                                                    {"refused_threads", all.refused_threads},
                                                    {"refusal", refusal_},
                                                    {"trouble", trouble_},
                                                    {"texts_kept", all.texts_kept},
                                                    {"texts_lost", all.texts_lost},
                                                    {"advised_bytes", all.advised},
                                                    {"event_ns", cost_.kept},
                                                    {"lost_event_ns", cost_.lost},
                                                    {"overhead_ns", all.overhead_ns},
                                                    {"end_ns", now()},
                                                    {"categories", categories},
                                                    {"types", types}});
}

elbow_trace_summary Recorder::stop() {
  helper_.reset();
  const std::lock_guard lock(mutex_);
  try {
    const Deadline deadline = steady_clock::now() + kUnfinished;
    for (Thread& thread : threads_) {
      thread.ring.close();
    }
    for (Thread& thread : threads_) {
      if (!thread.saved.finished()) {
        thread.saved.finish(deadline);
      }
    }
    const elbow_trace_summary all = added_up();
    append_clock("end");
    append_end(all);
    for (Thread& thread : threads_) {
      thread.ring.remove_file();
    }
    rmdir(memory_.c_str());
    return all;
  } catch (const Refusal& refusal) {
    throw Refusal(refusal.code, std::string(refusal.what()) + "; the events stay in " + memory_ +
                                    ": stop again, or merge the trace, which takes them from there");
  }
}

void Recorder::cost(int category, std::uint64_t& events, double& overhead_ns) const {
  const bool known = category == 63 || (category >= 0 && category < static_cast<int>(categories_.size()));
  if (!known || by_category_.empty()) {
    throw Refusal(EINVAL, known ? "what categories cost is known when the trace was stopped"
                                : "category " + std::to_string(category) + ": there is no such category");
  }
  events = by_category_[static_cast<std::size_t>(category)];
  overhead_ns = static_cast<double>(events) * cost_.kept;
}

}  // namespace elbowroom::trace

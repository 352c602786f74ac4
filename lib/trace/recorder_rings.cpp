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

using std::chrono::steady_clock;

constexpr auto kUnfinished =
    std::chrono::milliseconds(20);  // how long events are waited for that are just being written

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
  std::string sentence = text;
  if (all.texts_lost > 0) {
    sentence += "; " + std::to_string(all.texts_lost) + " descriptive records did not fit: give more text_bytes";
  }
  if (all.refused_threads > 0) {
    sentence += "; " + std::to_string(all.refused_threads) +
                " threads got no ring and were not recorded: there is no room " + "in memory";
  }
  return sentence;
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

// Allocates nothing: the reason may be that there is no memory.
void Recorder::failed(const char* why) {
  const std::lock_guard lock(trouble_mutex_);
  if (trouble_.front() == '\0') {
    std::snprintf(trouble_.data(), trouble_.size(), "%s", why);
  }
  not_before_ = steady_clock::now() + kAgain;
}

// Whoever drains or grows rings records it: its own ring is made before it holds another one's lock, but not before there
// is any other, so that the first ring is the program's.
void own_ring_after(std::size_t others) {
  if (others > 0 && elbow_trace_own == nullptr) {
    elbow_trace_attach();
  }
}

// An interval on the calling thread, which a timeline shows.
template <typename Work>
void Recorder::flush(const Thread& thread, Work work) {
  const auto number = static_cast<std::uint32_t>(thread.ring.header().thread);
  elbow_trace_begin(flush_type_, number, 0, 0);
  work();
  elbow_trace_end(flush_type_, number, 0, 0);
}

// Without a helper a ring that is full loses what follows, and the end of the trace says why.
void Recorder::start_helper() {
  try {
    helper_ = std::make_unique<Helper>([this] { return help(); }, settings_.core);
  } catch (const NoThread& refusal) {
    failed(refusal.what());
  }
}

bool Recorder::drain() {
  bool any = false;
  const std::vector<Thread*> all = threads();
  own_ring_after(all.size());
  for (Thread* thread : all) {
    const std::lock_guard lock(thread->saving);
    if (!thread->saved.finished() && thread->saved.is_due()) {
      flush(*thread, [&] { thread->saved.drain(); });
      any = true;
    }
  }
  return any;
}

// Every ring has room for so many events; by half as many again as it has at least, so that growing is rare.
bool Recorder::grow(std::uint64_t room) {
  bool any = false;
  const std::vector<Thread*> all = threads();
  own_ring_after(all.size());
  for (Thread* thread : all) {
    const std::lock_guard lock(thread->saving);
    Ring& ring = thread->ring;
    if (!thread->saved.finished() && ring.room() < room) {
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
  } catch (const std::bad_alloc&) {
    failed("there is not enough memory to empty rings or make them grow: what does not fit is lost");
  } catch (const std::exception& error) {
    failed(error.what());
  }
  return false;
}

Recorder::Thread* Recorder::thread_of(const Ring& ring) {
  const std::lock_guard lock(mutex_);
  const auto entry =
      std::find_if(threads_.rbegin(), threads_.rend(), [&](const Thread& one) { return &one.ring == &ring; });
  return entry == threads_.rend() ? nullptr : &*entry;
}

// By the ring's own thread. The span of the flush is added when there is room for it, with the times that it had.
void Recorder::flush_full(Ring& ring) {
  {
    const std::lock_guard lock(trouble_mutex_);
    if (steady_clock::now() < not_before_) {
      return;
    }
  }
  Thread* const thread = thread_of(ring);
  if (thread == nullptr) {
    return;
  }
  const std::lock_guard lock(thread->saving);
  if (thread->saved.finished()) {
    return;
  }
  const RingHeader& header = ring.header();
  elbow_trace_slot event{};
  event.time = stamp(clock_.counter);
  event.type = flush_type_->number;
  event.kind = ELBOW_TRACE_BEGIN;
  event.small = static_cast<std::uint32_t>(header.thread);
  try {
    thread->saved.drain();
  } catch (const std::exception& error) {
    failed(error.what());
  }
  if (header.drained >= header.ring.limit) {
    ring.add_past(event);
    event.time = stamp(clock_.counter);
    event.kind = ELBOW_TRACE_END;
    ring.add_past(event);
  }
}

void Recorder::detach(Ring& ring) {
  Thread* const thread = thread_of(ring);
  if (thread == nullptr) {
    return;
  }
  const std::lock_guard lock(thread->saving);
  try {
    if (!thread->saved.finished()) {
      thread->saved.finish({});
      thread->ring.release();
    }
  } catch (const std::bad_alloc&) {
    failed("there is not enough memory to save the events of a thread that ended");
  } catch (const Refusal& refusal) {
    failed(refusal.what());
  }
}

// Rings that grow do so before the region begins: each has room for the bytes that were asked for, and none grows inside.
void Recorder::region(bool on) {
  const bool grows = settings_.policy == ELBOW_TRACE_GROW;
  if (grows && on) {
    const std::lock_guard lock(growing_);
    inside_ = true;
    if (helper_ != nullptr) {
      helper_->hold(true);
    }
    try {
      grow(settings_.bytes / sizeof(elbow_trace_slot));
    } catch (const std::bad_alloc&) {
      failed("there is not enough memory to make rings grow: what does not fit is lost");
    } catch (const Refusal& refusal) {
      failed(refusal.what());
    }
  }
  elbow_trace_write(region_type_, ELBOW_TRACE_REGION, on ? 1 : 0, 0, 0);
  if (grows && !on) {
    const std::lock_guard lock(growing_);
    inside_ = false;
    if (helper_ != nullptr) {
      helper_->hold(false);
    }
  }
}

elbow_trace_summary Recorder::added_up() {
  auto all = c_interface::sized<elbow_trace_summary>();
  by_category_.assign(64, 0);
  for (const Thread& thread : threads_) {
    const RingHeader& header = thread.saved.last();
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
  // The library's own category comes last.
  const std::string categories = json_array(categories_.size() + 1, [&](std::size_t number) {
    const bool own = number == categories_.size();
    const int category = own ? 63 : static_cast<int>(number);
    std::uint64_t events = 0;
    double overhead_ns = 0;
    cost(category, events, overhead_ns);
    Line line;
    line.add("number", category).add("name", own ? "trace" : categories_[number].c_str());
    return line.add("events", events).add("overhead_ns", overhead_ns).text();
  });
  const std::string types = json_array(types_.size(), [&](std::size_t number) {
    std::uint64_t kept = 0;
    for (const Thread& thread : threads_) {
      const auto& counts = thread.saved.by_type();
      kept += number < counts.size() ? counts[number] : 0;
    }
    return Line().add("type", number).add("kept", kept).text();
  });
  Line line("end");
  line.add("recorded", all.recorded).add("kept", all.kept).add("lost", all.lost);
  line.add("fullest", all.fullest).add("capacity", all.capacity).add("threads", all.threads);
  line.add("refused_threads", all.refused_threads).add("refusal", refusal_).add("trouble", trouble_.data());
  line.add("texts_kept", all.texts_kept).add("texts_lost", all.texts_lost).add("advised_bytes", all.advised);
  line.add("event_ns", cost_.kept).add("lost_event_ns", cost_.lost).add("overhead_ns", all.overhead_ns);
  line.add("end_ns", now()).add_json("categories", categories).add_json("types", types);
  append_text(directory_ + "/" + stem_ + ".jsonl", line.text() + "\n");
}

// A region may begin or end meanwhile: it finds a helper, or none. It is not ended with the lock held, which its work takes.
void Recorder::end_helper() {
  std::unique_ptr<Helper> helper;
  {
    const std::lock_guard lock(growing_);
    helper = std::move(helper_);
  }
}

elbow_trace_summary Recorder::stop() {
  end_helper();
  const std::lock_guard lock(mutex_);
  try {
    const Deadline deadline = steady_clock::now() + kUnfinished;
    for (Thread& thread : threads_) {
      thread.ring.close();
    }
    for (Thread& thread : threads_) {
      const std::lock_guard saving(thread.saving);
      if (!thread.saved.finished()) {
        thread.saved.finish(deadline);
      }
    }
    const elbow_trace_summary all = added_up();
    append_clock("end");
    write_lines();
    append_end(all);
    memory_folder_.remove();
    return all;
  } catch (const std::bad_alloc&) {
    throw Refusal(ENOMEM, "there is not enough memory to save the trace; the events stay in " + memory_ +
                              ": stop again, or merge the trace, which takes them from there");
  } catch (const Refusal& refusal) {
    throw Refusal(refusal.code, std::string(refusal.what()) + "; the events stay in " + memory_ +
                                    ": stop again, or merge the trace, which takes them from there");
  }
}

void Recorder::discard() {
  end_helper();
  const std::lock_guard lock(mutex_);
  const std::string front = directory_ + "/" + stem_;
  for (std::size_t number = 0; number < threads_.size(); ++number) {
    threads_[number].ring.close();
    unlink((front + "." + ring_name(static_cast<int>(number))).c_str());
  }
  unlink((front + ".jsonl").c_str());
  memory_folder_.remove();
}

bool Recorder::has_others(const std::vector<int>& categories) {
  const std::lock_guard lock(mutex_);
  return std::any_of(types_.begin(), types_.end(), [&](const Type& type) {
    return type.category != kOwnCategory &&
           std::find(categories.begin(), categories.end(), type.category) == categories.end();
  });
}

void Recorder::finalised() {
  const std::lock_guard lock(mutex_);
  write_down(Line("finalised"));
}

void Recorder::cost(int category, std::uint64_t& events, double& overhead_ns) const {
  const bool known = category == 63 || (category >= 0 && category < static_cast<int>(categories_.size()));
  if (!known || by_category_.empty()) {
    throw Refusal(EINVAL, known ? "the cost of categories is known once the trace is stopped"
                                : "category " + std::to_string(category) + ": there is no such category");
  }
  events = by_category_[static_cast<std::size_t>(category)];
  overhead_ns = static_cast<double>(events) * cost_.kept;
}

}  // namespace elbowroom::trace

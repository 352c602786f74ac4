// Begins and ends as every viewer wants them: properly nested on each thread, whatever was recorded or lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Deeper ones are shown as events: viewers have limits, and memory must not grow with begins that never end.
constexpr std::size_t kDeepestShown = 512;

struct Span {
  std::uint32_t type = 0;
  std::uint32_t small = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::int64_t begin = 0;

  std::array<std::uint64_t, 3> values() const { return {small, first, second}; }
};

class Spans {
 public:
  explicit Spans(const MergedJob& job);

  // False: nested too deeply, to be shown as an event.
  bool begin(const MergedEvent& event);
  // Which open span of its thread ends, from 0 for the innermost; -1: none, to be shown as an event. It is the innermost of
  // the event's type; of tasks, of the same number. Those inside of it are interrupted: to be ended and begun again.
  std::ptrdiff_t ending(const MergedEvent& event) const;
  // That one is gone.
  void end(const MergedEvent& event, std::ptrdiff_t which);

  // Open spans of a thread, the innermost last.
  const std::vector<Span>& open(std::uint32_t thread) const { return threads_[thread].open; }

 private:
  struct Thread {
    std::vector<Span> open;
    std::uint64_t too_deep = 0;  // begun below the deepest, and not ended
  };
  std::vector<Thread> threads_;
  std::vector<bool> task_;  // of each type: the category is "task", where `first` tells one from another
};

// An output for a viewer. What it writes of an event is for those who inherit from this.
class Viewer : public Sink {
 public:
  void begin(const MergedJob& job) override;
  void event(const MergedEvent& e) override;

 protected:
  // A span of the event's thread, at its time. `again`: what went on around an end that was not its own is begun anew.
  virtual void opens(const MergedEvent& e, const Span& span, bool again) = 0;
  // `interrupted`: by the end of one around it; else the event has the values that it ends with.
  virtual void closes(const MergedEvent& e, const Span& span, bool interrupted) = 0;
  // `unpaired`: "begin" or "end" where there is no span of it, else NULL.
  virtual void instant(const MergedEvent& e, const char* unpaired) = 0;
  virtual void message_end(const MergedEvent& e) = 0;
  virtual void counts(const MergedEvent& e) = 0;
  const std::vector<Span>& open(std::uint32_t thread) const { return spans_->open(thread); }

  const MergedJob* job_ = nullptr;

 private:
  void ends(const MergedEvent& e);
  std::optional<Spans> spans_;
};

}  // namespace elbowroom::trace

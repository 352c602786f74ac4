// A part of the time: what an output gets of a trace when it is asked for an interval.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "trace/merge/sink.hpp"
#include "trace/outputs/spans.hpp"

namespace elbowroom::trace {

// Stands before an output, which gets the events from `from` to `until` (ns since the job's start, both inclusive) and the
// messages with both ends there. Intervals that began before or end after are cut at the bounds; counters and regions of
// interest begin with what held at `from`: such events are marked kClipped. Memory: what is open, and the counters.
class Part final : public Sink {
 public:
  Part(Sink& output, std::int64_t from, std::int64_t until) : output_(output), from_(from), until_(until) {}

  void begin(const MergedJob& job) override;
  void event(const MergedEvent& event) override;
  void message(const MergedMessage& message) override;
  void gap(const MergedGap& gap) override;
  void end() override;

 private:
  void follow(const MergedEvent& event);
  void enter();
  void leave();
  void give(MergedEvent event, std::int64_t time, std::uint8_t kind);

  Sink& output_;
  std::int64_t from_;
  std::int64_t until_;
  const MergedJob* job_ = nullptr;
  std::optional<Spans> spans_;
  std::vector<std::vector<MergedEvent>> open_;  // as spans_.open of each thread
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, MergedEvent> counters_;  // thread, type, which
  std::map<std::uint32_t, MergedEvent> regions_;                                             // by rank
  bool entered_ = false;
  bool left_ = false;
};

}  // namespace elbowroom::trace

// Tells on stderr how far a merge is: `progress DONE TOTAL`, in events, some hundred times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Stands before an output.
class Progress final : public Sink {
 public:
  explicit Progress(Sink& output) : output_(output) {}

  void begin(const MergedJob& job) override {
    for (const MergedThread& thread : job.threads) {
      total_ += thread.kept;
    }
    step_ = std::max<std::uint64_t>(total_ / kSteps, 1);
    output_.begin(job);
  }
  void event(const MergedEvent& event) override {
    output_.event(event);
    if (++done_ % step_ == 0) {
      std::fprintf(stderr, "progress %llu %llu\n", static_cast<unsigned long long>(done_),
                   static_cast<unsigned long long>(total_));
    }
  }
  void message(const MergedMessage& message) override { output_.message(message); }
  void gap(const MergedGap& gap) override { output_.gap(gap); }
  void end() override { output_.end(); }

 private:
  static constexpr std::uint64_t kSteps = 200;

  Sink& output_;
  std::uint64_t total_ = 0;
  std::uint64_t step_ = 1;
  std::uint64_t done_ = 0;
};

}  // namespace elbowroom::trace

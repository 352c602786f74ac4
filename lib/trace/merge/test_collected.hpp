// Keeps what a merge delivers, for tests.
#pragma once

#include <string>
#include <vector>

#include "trace/merge/merge.hpp"

namespace elbowroom::trace {

struct Collected : Sink {
  MergedJob job;
  std::vector<MergedEvent> events;
  std::vector<MergedMessage> messages;
  std::vector<MergedGap> gaps;
  bool ended = false;

  void begin(const MergedJob& of) override { job = of; }
  void event(const MergedEvent& event) override { events.push_back(event); }
  void message(const MergedMessage& message) override { messages.push_back(message); }
  void gap(const MergedGap& gap) override { gaps.push_back(gap); }
  void end() override { ended = true; }
};

// A trace that was read and merged.
struct ReadTrace {
  std::unique_ptr<OpenedTrace> trace;
  Merged merged;
  Collected got;

  explicit ReadTrace(const std::string& directory, std::size_t bins = 0)
      : trace(open_trace(directory)), merged(*trace, bins) {
    merge(*trace, &got, merged);
  }
  // Whether a warning says so.
  bool warned(const std::string& part) const {
    for (const auto& all : {trace->job.warnings, merged.messages.warnings()}) {
      for (const std::string& warning : all) {
        if (warning.find(part) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  }
};

}  // namespace elbowroom::trace

// Brings the events of all threads into one order, the messages' ends together, and both to an output.
#pragma once

#include <cstdint>

#include "trace/merge/messages.hpp"
#include "trace/merge/opened.hpp"
#include "trace/merge/sink.hpp"
#include "trace/merge/statistics.hpp"

namespace elbowroom::trace {

// What a merge found besides what the files said.
struct Merged {
  Messages messages;
  Statistics statistics;
  std::uint64_t events = 0;
  std::int64_t worst_error = 0;  // ns; -1: of some events it is not known
  std::uint64_t unsynced = 0;    // events of ranks without a sync point
  bool monotone = true;
  std::uint64_t appeared = 0;  // events of a type that no event had when the trace was opened: left out

  // The files grew or shrank since the trace was opened: its program still runs.
  bool changed(const OpenedTrace& trace) const;

  Merged(const OpenedTrace& trace, std::size_t bins);
};

// Delivers the whole trace; `sink` may be null. Memory: a window for each thread, and messages under way.
void merge(const OpenedTrace& trace, Sink* sink, Merged& merged);

}  // namespace elbowroom::trace

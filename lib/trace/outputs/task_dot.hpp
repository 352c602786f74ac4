// A graph of tasks as DOT, the language of Graphviz.
#pragma once

#include <cstdint>

#include "trace/merge/sink.hpp"
#include "trace/outputs/task_graph.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {

// What is not in the graph, and is said of it.
struct LeftOut {
  std::uint64_t messages = 0;  // at least one of their ends is in no task
  std::uint64_t ends = 0;      // of tasks that had not begun
  std::uint64_t events = 0;    // lost
};

// A cluster for each rank; the critical path is marked, circles and tasks that nobody ran are named.
void write_dot(WholeFile& file, const MergedJob& job, const TaskGraph& graph, const LeftOut& left_out);

}  // namespace elbowroom::trace

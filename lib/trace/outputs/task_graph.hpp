// Tasks, what they wait for, and the longest chain of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace elbowroom::trace {

struct GraphTask {
  std::uint32_t rank = 0;  // index in MergedJob::ranks
  std::uint64_t number = 0;
  std::uint32_t type = 0;
  std::uint32_t thread = 0;  // where it began first
  bool begun = false;
  bool open = false;       // not ended in the trace
  std::int64_t begin = 0;  // ns
  std::int64_t run = 0;    // ns: while it was the innermost task of its thread
  std::string_view name;
};

// A message leaves or reaches a task after it ran for `elapsed` ns; `order` rises within a task.
struct TaskMoment {
  std::uint32_t task = 0;
  std::int64_t elapsed = 0;
  std::uint64_t order = 0;
};

struct TaskMessage {
  TaskMoment sent;
  TaskMoment received;
  std::int64_t transfer = 0;  // ns
  std::uint64_t bytes = 0;
};

class TaskGraph {
 public:
  // The task of that number, made when it is new.
  std::uint32_t task(std::uint32_t rank, std::uint64_t number);
  // Task `second` waits for `first`; said twice, it is one dependency.
  void depends(std::uint32_t first, std::uint32_t second);
  void finish();

  std::vector<GraphTask> tasks;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> dependencies;  // (first, second), sorted once finished
  std::vector<TaskMessage> messages;

 private:
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> numbers_;  // of each rank
};

// Times of one chain never overlap: a task counts up to a message that leaves it, the message while it is on its way, its
// receiver from there on.
struct CriticalPath {
  std::int64_t length = 0;            // ns
  std::vector<std::uint32_t> tasks;   // first to last
  std::vector<std::uint32_t> circle;  // tasks that wait for each other; there is no path then
};

CriticalPath critical_path(const TaskGraph& graph);

}  // namespace elbowroom::trace

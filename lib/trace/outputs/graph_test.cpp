#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/task_graph.hpp"
#include "trace/outputs/test_job.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::uint8_t kBegin = ELBOW_TRACE_BEGIN;
constexpr std::uint8_t kEnd = ELBOW_TRACE_END;

void run_task(Sink& sink, std::uint32_t thread, std::uint64_t number, std::int64_t begin, std::int64_t end,
              std::uint32_t type = 0) {
  sink.event(test_event(begin, thread, type, kBegin, number));
  sink.event(test_event(end, thread, type, kEnd, number));
}

void waits(Sink& sink, std::uint32_t thread, std::uint64_t first, std::uint64_t second) {
  sink.event(test_event(0, thread, 2, ELBOW_TRACE_EVENT, first, second));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What `record` makes of the test's job, as DOT.
template <class Record>
std::string dot_of(const Record& record, const MergedJob& job = test_job()) {
  const TestFolder folder;
  const auto sink = graph_output(folder.file("g.dot"));
  sink->begin(job);
  record(*sink);
  sink->end();
  return read_whole(folder.file("g.dot"));
}

TEST_CASE("tasks of a rank stand together, named by their texts, with their durations") {
  MergedJob job = test_job();
  job.texts = {{1, 0, 4, "solve \"4\""}};
  const std::string dot = dot_of(
      [](Sink& sink) {
        run_task(sink, 0, 4, 0, 1'500);
        run_task(sink, 1, 4, 0, 20, 1);
        run_task(sink, 1, 5, 30, 2'000'030);
      },
      job);
  CHECK(contains(dot, "subgraph cluster_rank_1 {\n    label=\"rank 1, node1\";\n"));
  CHECK(contains(dot, "r0_t4 [label=\"solve 4\\n1.5 us\""));
  CHECK(contains(dot, "r1_t4 [label=\"solve \\\"4\\\"\\n20 ns\""));
  CHECK(contains(dot, "r1_t5 [label=\"solve 5\\n2 ms\""));
}

TEST_CASE("a graph as a whole, letter by letter") {
  MergedJob job = test_job();
  job.texts = {{0, 0, 1, "potrf(0)"}};
  const std::string dot = dot_of(
      [](Sink& sink) {
        waits(sink, 0, 1, 2);
        sink.event(test_event(0, 0, 0, kBegin, 1));
        sink.event(test_event(10, 1, 1, kBegin, 1));
        test_message(sink, 1, 100, 0, 130, 1, 4096);
        sink.event(test_event(1'200, 0, 0, kEnd, 1));
        sink.event(test_event(1'300, 1, 1, kEnd, 1));
        run_task(sink, 0, 2, 1'400, 1'500);
      },
      job);
  CHECK(dot == R"dot(digraph tasks {
  graph [label="3 tasks, 1 dependencies, 1 messages between tasks. Critical path: 1.3 us through 2 tasks.", labelloc=t, fontname="sans-serif"];
  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];
  edge [color="#5B6470", fontname="sans-serif", fontsize=9];
  subgraph cluster_rank_0 {
    label="rank 0, node0";
    r0_t1 [label="potrf(0)\n1.2 us", fillcolor="#F6C9A8", type="solve", begin_ns=0, run_ns=1200, critical=true, color="#D55E00", penwidth=3];
    r0_t2 [label="solve 2\n100 ns", fillcolor="#F6C9A8", type="solve", begin_ns=1400, run_ns=100, critical=true, color="#D55E00", penwidth=3];
  }
  subgraph cluster_rank_1 {
    label="rank 1, node1";
    r1_t1 [label="factor 1\n1.29 us", fillcolor="#A9D3EA", type="factor", begin_ns=10, run_ns=1290];
  }
  r0_t1 -> r0_t2 [color="#D55E00", penwidth=3];
  r0_t1 -> r1_t1 [style=dashed, constraint=false, label="4096 B", transfer_ns=30];
}
)dot");
}

TEST_CASE("the critical path is the longest by time, not by number of tasks") {
  const std::string dot = dot_of([](Sink& sink) {
    for (const auto& [first, second] : {std::pair{1, 2}, {2, 3}, {3, 5}, {1, 4}, {4, 5}, {4, 5}}) {
      waits(sink, 0, first, second);
    }
    run_task(sink, 0, 1, 0, 100);
    run_task(sink, 0, 2, 100, 110);
    run_task(sink, 0, 3, 110, 120);
    run_task(sink, 1, 9, 200, 210);
    run_task(sink, 0, 4, 220, 720);
    run_task(sink, 0, 5, 730, 740);
  });
  CHECK(contains(dot, "6 tasks, 5 dependencies, 0 messages between tasks. Critical path: 610 ns through 3 tasks."));
  CHECK(contains(dot, "r0_t1 -> r0_t4 [color=\"#D55E00\", penwidth=3];"));
  CHECK(contains(dot, "r0_t1 -> r0_t2;"));
}

TEST_CASE("a message between tasks is on the critical path from its send to its receive") {
  const std::string dot = dot_of([](Sink& sink) {
    sink.event(test_event(0, 0, 0, kBegin, 1));
    sink.event(test_event(10, 1, 0, kBegin, 2));
    test_message(sink, 1, 100, 0, 130, 1, 4096);
    sink.event(test_event(140, 0, 0, kEnd, 1));
    sink.event(test_event(330, 1, 0, kEnd, 2));
  });
  CHECK(contains(dot, "Critical path: 330 ns through 2 tasks."));
  CHECK(contains(dot, "r0_t1 -> r1_t2 [style=dashed, constraint=false, label=\"4096 B\", transfer_ns=30, color="));
}

TEST_CASE("two tasks that exchange messages are no circle") {
  const std::string dot = dot_of([](Sink& sink) {
    sink.event(test_event(0, 0, 0, kBegin, 1));
    sink.event(test_event(0, 1, 0, kBegin, 2));
    test_message(sink, 1, 10, 0, 20, 1, 8);
    test_message(sink, 2, 30, 1, 40, 0, 8);
    sink.event(test_event(50, 0, 0, kEnd, 1));
    sink.event(test_event(60, 1, 0, kEnd, 2));
  });
  CHECK(contains(dot, "Critical path: 60 ns through"));
}

TEST_CASE("a message outside tasks is counted, and not drawn") {
  const std::string dot = dot_of([](Sink& sink) {
    run_task(sink, 0, 1, 0, 10);
    test_message(sink, 1, 20, 0, 30, 1, 8);
  });
  CHECK(contains(dot, "Left out: 1 messages of which an end is in no task."));
  CHECK(!contains(dot, "->"));
}

TEST_CASE("tasks that wait for each other are named") {
  const std::string dot = dot_of([](Sink& sink) {
    waits(sink, 0, 1, 2);
    waits(sink, 0, 2, 3);
    waits(sink, 0, 3, 2);
    run_task(sink, 0, 1, 0, 10);
    run_task(sink, 0, 2, 10, 20);
    run_task(sink, 0, 3, 20, 30);
  });
  CHECK(contains(dot, "Critical path: n/a, these wait for each other: solve 2 (rank 0), solve 3 (rank 0)."));
}

TEST_CASE("a task that waits for itself is named") {
  const std::string dot = dot_of([](Sink& sink) {
    waits(sink, 0, 1, 1);
    run_task(sink, 0, 1, 0, 10);
  });
  CHECK(contains(dot, "these wait for each other: solve 1 (rank 0)."));
}

TEST_CASE("a task that only a dependency knows is drawn as never begun") {
  const std::string dot = dot_of([](Sink& sink) {
    waits(sink, 0, 8, 1);
    run_task(sink, 0, 1, 0, 10);
  });
  CHECK(contains(dot, "never begun: task 8 (rank 0)."));
  CHECK(contains(dot, "r0_t8 [label=\"task 8\\nnever begun\", style=dashed];"));
}

TEST_CASE("a task inside another takes its time from it") {
  const std::string dot = dot_of([](Sink& sink) {
    sink.event(test_event(0, 0, 0, kBegin, 1));
    run_task(sink, 0, 2, 100, 400);
    sink.event(test_event(500, 0, 0, kEnd, 1));
  });
  CHECK(contains(dot, "r0_t1 [label=\"solve 1\\n200 ns\""));
  CHECK(contains(dot, "r0_t2 [label=\"solve 2\\n300 ns\""));
}

TEST_CASE("a task that was suspended counts while it ran, on any thread") {
  MergedJob job = test_job();
  job.threads[1].rank = 0;
  const std::string dot = dot_of(
      [](Sink& sink) {
        run_task(sink, 0, 1, 0, 100);
        run_task(sink, 1, 1, 300, 350);
      },
      job);
  CHECK(contains(dot, "r0_t1 [label=\"solve 1\\n150 ns\""));
}

TEST_CASE("a task that did not end is at least as long as the trace goes") {
  const std::string dot = dot_of([](Sink& sink) {
    sink.event(test_event(0, 0, 0, kBegin, 1));
    sink.event(test_event(70, 1, 0, kEnd, 2));
  });
  CHECK(contains(dot, "r0_t1 [label=\"solve 1\\n> 70 ns\""));
  CHECK(contains(dot, "Not ended (at least as long): solve 1 (rank 0)."));
  CHECK(contains(dot, "Left out: 1 ends of tasks that had not begun."));
}

TEST_CASE("a trace without tasks is refused, and nothing written") {
  const TestFolder folder;
  {
    const auto sink = graph_output(folder.file("g.dot"));
    sink->begin(test_job());
    CHECK_THROWS_AS(sink->end(), std::runtime_error);
  }
  CHECK(folder.empty());
}

TEST_CASE("a chain of a hundred thousand tasks has its length") {
  TaskGraph graph;
  for (std::uint32_t number = 0; number < 100'000; ++number) {
    graph.tasks[graph.task(0, number)].run = 10;
    if (number > 0) {
      graph.depends(number - 1, number);
    }
  }
  graph.finish();
  const CriticalPath path = critical_path(graph);
  CHECK(path.length == 1'000'000);
  CHECK(path.tasks.size() == 100'000);
}

}  // namespace
}  // namespace elbowroom::trace

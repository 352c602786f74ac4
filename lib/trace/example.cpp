// The same in C++: intervals end with their scope. example_cpp DIRECTORY; docs/reference/trace-library.md shows it.
#define ELBOW_TRACE_LEVEL 1  // details of level 2 are not compiled
#include <cstdio>
#include <exception>
#include <numeric>
#include <vector>

#include "elbowroom/trace.hpp"

namespace {

namespace trace = elbow::trace;

double summed(const std::vector<std::vector<double>>& rows) {
  const trace::Category tasks("task");
  const trace::Type row_sum("row sum", tasks, {.small = "cells", .first = "task"});
  const trace::BasicType<2> cell("cell", tasks, {.first = "column"});
  const trace::Region region;
  double all = 0;
  std::uint64_t number = 0;
  for (const auto& row : rows) {
    const trace::Scope scope(row_sum, static_cast<std::uint32_t>(row.size()), number++);
    cell.event(0, number);
    all += std::accumulate(row.begin(), row.end(), 0.0);
  }
  row_sum.text(0, "the first row");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    trace::Session session({.directory = argc > 1 ? argv[1] : "trace"});
    trace::name_thread("main");
    const double all = summed(std::vector<std::vector<double>>(100, std::vector<double>(1000, 1.0)));
    const elbow_trace_summary summary = session.stop();
    char text[512];
    elbow_trace_describe(&summary, text, sizeof text);
    std::printf("%s\n", text);
    return all == 100'000 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

/* A program that records what it does: example DIRECTORY. docs/reference/trace-library.md shows it. */
#include <stdio.h>

#include "elbowroom/trace.h"

static double sum(const double* row, int cells) {
  double all = 0;
  for (int i = 0; i < cells; ++i) {
    all += row[i];
  }
  return all;
}

int main(int argc, char** argv) {
  elbow_trace_settings settings = {.size = sizeof settings, .directory = argc > 1 ? argv[1] : "trace"};
  if (elbow_trace_start(&settings) != 0) {
    fprintf(stderr, "%s\n", elbow_trace_error());
    return 1;
  }
  const int tasks = elbow_trace_category("task");
  const elbow_trace_type* row_sum = elbow_trace_type_new("row sum", tasks, "cells", "task", NULL);
  const elbow_trace_type* done = elbow_trace_type_new("rows done", tasks, NULL, "rows", NULL);
  elbow_trace_thread("main");

  static double rows[100][1000];
  double all = 0;
  elbow_trace_region(1);
  for (int row = 0; row < 100; ++row) {
    elbow_trace_begin(row_sum, 1000, (uint64_t)row, 0);
    all += sum(rows[row], 1000);
    elbow_trace_end(row_sum, 1000, (uint64_t)row, 0);
    elbow_trace_count(done, 0, row + 1);
  }
  elbow_trace_region(0);
  elbow_trace_text(row_sum, 0, "the first row");

  elbow_trace_summary summary = {.size = sizeof summary};
  char text[512];
  if (elbow_trace_stop(&summary) != 0) {
    fprintf(stderr, "%s\n", elbow_trace_error());
    return 1;
  }
  elbow_trace_describe(&summary, text, sizeof text);
  printf("%s\n", text);
  return all == 0 && summary.recorded == summary.kept + summary.lost ? 0 : 1;
}

// runtime: messages through a task runtime and through MPI (README.md).
#include "common/command_line.hpp"
#include "runtime/runtime.hpp"

int main(int argc, char** argv) {
  using namespace elbowroom;
  program::CommandLine line("messages through StarPU-MPI and through MPI, in the same processes, threads and memory",
                            "two MPI ranks", "task, cores, nodes");
  line.accept_threads("multiple");
  if (const auto code = line.parse(argc, argv)) return *code;
  // StarPU's communication thread and this one both call MPI; both ways of a message are measured at this level.
  return program::with_ranks("runtime", argc, argv, "multiple",
                             [&](const Job& job) { return line.serve<runtime::Runtime>(job); });
}

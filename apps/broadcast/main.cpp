// forwarder: what forwarding broadcasts costs the computing cores of a rank inside the tree (README.md).
#include "broadcast/forwarder.hpp"
#include "common/blas.hpp"
#include "common/command_line.hpp"

int main(int argc, char** argv) {
  using namespace elbowroom;
  program::choose_blas_kernels(argv);
  program::CommandLine line("broadcasts over a tree, and a kernel beside them on a rank that forwards",
                            "three MPI ranks or more", "tree, kernel, cores, nodes");
  line.accept_threads("funneled");
  if (const auto code = line.parse(argc, argv)) return *code;
  return program::with_ranks("forwarder", argc, argv, "funneled",
                             [&](const Job& job) { return line.serve<forwarding::Forwarder>(job); });
}

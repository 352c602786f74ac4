#include "kernels/algorithm.hpp"

#include <memory>

#include "kernels/cg.hpp"
#include "kernels/gemm.hpp"

namespace elbowroom::kernels {

std::unique_ptr<Algorithm> make_algorithm(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node,
                                          int comm_node, Engine& engine) {
  if (problem.task == Task::gemm) {
    return std::make_unique<Gemm>(problem, rows, rank, comp_node, comm_node, engine);
  }
  return std::make_unique<Cg>(problem, rows, rank, comp_node, comm_node, engine);
}

double sign(const Problem& problem, std::size_t index) { return uniform(problem.seed + 3, index, 0) < 0 ? -1 : 1; }

std::vector<double> whole(const Job& job, const Rows& rows, std::size_t block, const std::vector<double>& own) {
  std::vector<int> counts;
  std::vector<int> places;
  for (std::size_t rank = 0; rank < rows.ranks; ++rank) {
    counts.push_back(static_cast<int>((rows.last(rank) - rows.first(rank)) * block));
    places.push_back(static_cast<int>(rows.first(rank) * block));
  }
  std::vector<double> all(rows.blocks * block);
  MPI_Allgatherv(own.data(), static_cast<int>(own.size()), MPI_DOUBLE, all.data(), counts.data(), places.data(),
                 MPI_DOUBLE, job.headers());
  return all;
}

namespace {

double reduced(const Job& job, double own, MPI_Op operation) {
  double all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, operation, job.headers());
  return all;
}

}  // namespace

double summed(const Job& job, double own) { return reduced(job, own, MPI_SUM); }
double largest(const Job& job, double own) { return reduced(job, own, MPI_MAX); }

}  // namespace elbowroom::kernels

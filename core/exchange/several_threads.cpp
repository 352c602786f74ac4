#include "exchange/several_threads.hpp"

#include <mpi.h>

#include "protocol/request.hpp"

namespace elbowroom {

void check_several_threads(const Job& job, const std::string& field, std::size_t threads) {
  if (threads < 2) {
    return;
  }
  if (job.thread_level() < MPI_THREAD_MULTIPLE) {
    throw RequestError(field, std::to_string(threads),
                       "the MPI was not started for several communication threads, or has no MPI_THREAD_MULTIPLE",
                       "start it with: measure --threads multiple", "machine");
  }
  // Seen with the ob1 of Open MPI 5.0.11 (single copies, shared memory, TCP: nearly every time) and 4.1.4 (rarely), never
  // with MPICH: threads that send at once crash the library's progress or wait for ever. Why is not settled.
  const bool by_ob1 = job.transport() != "unknown";
  if (by_ob1 && job.library().rfind("Open MPI", 0) == 0) {
    throw RequestError(field, std::to_string(threads), "several communication threads crash or hang in Open MPI's ob1",
                       "use --mpi mpich, or an Open MPI with UCX; one communication thread works", "machine");
  }
}

}  // namespace elbowroom

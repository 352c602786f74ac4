// The collectives of MPI in their three forms.
#include <stdexcept>

#include "exchange/operation.hpp"

namespace elbowroom {

void MpiOperation::call_collective() {
  const int count = static_cast<int>(elements_);
  char* const cast = rank_ == kRoot ? sent_ : received_;
  switch (overlap_.operation) {
    case Operation::bcast: MPI_Bcast(cast, size_, MPI_BYTE, kRoot, comm_); break;
    case Operation::reduce: MPI_Reduce(sent_, received_, count, MPI_FLOAT, MPI_SUM, kRoot, comm_); break;
    case Operation::allreduce: MPI_Allreduce(sent_, received_, count, MPI_FLOAT, MPI_SUM, comm_); break;
    case Operation::allgather: MPI_Allgather(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_); break;
    case Operation::alltoall: MPI_Alltoall(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_); break;
    case Operation::reduce_scatter:
      MPI_Reduce_scatter(sent_, received_, counts_.data(), MPI_FLOAT, MPI_SUM, comm_);
      break;
    default: MPI_Barrier(comm_);
  }
}

void MpiOperation::start_collective(MPI_Request* request) {
  const int count = static_cast<int>(elements_);
  char* const cast = rank_ == kRoot ? sent_ : received_;
  switch (overlap_.operation) {
    case Operation::bcast: MPI_Ibcast(cast, size_, MPI_BYTE, kRoot, comm_, request); break;
    case Operation::reduce: MPI_Ireduce(sent_, received_, count, MPI_FLOAT, MPI_SUM, kRoot, comm_, request); break;
    case Operation::allreduce: MPI_Iallreduce(sent_, received_, count, MPI_FLOAT, MPI_SUM, comm_, request); break;
    case Operation::allgather:
      MPI_Iallgather(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_, request);
      break;
    case Operation::alltoall: MPI_Ialltoall(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_, request); break;
    case Operation::reduce_scatter:
      MPI_Ireduce_scatter(sent_, received_, counts_.data(), MPI_FLOAT, MPI_SUM, comm_, request);
      break;
    default: MPI_Ibarrier(comm_, request);
  }
}

#ifdef ELBOWROOM_PERSISTENT_COLLECTIVES

bool has_persistent_collectives() { return true; }

void MpiOperation::make_collective(MPI_Request* request) {
  const int count = static_cast<int>(elements_);
  char* const cast = rank_ == kRoot ? sent_ : received_;
  const MPI_Info none = MPI_INFO_NULL;
  switch (overlap_.operation) {
    case Operation::bcast: MPI_Bcast_init(cast, size_, MPI_BYTE, kRoot, comm_, none, request); break;
    case Operation::reduce:
      MPI_Reduce_init(sent_, received_, count, MPI_FLOAT, MPI_SUM, kRoot, comm_, none, request);
      break;
    case Operation::allreduce:
      MPI_Allreduce_init(sent_, received_, count, MPI_FLOAT, MPI_SUM, comm_, none, request);
      break;
    case Operation::allgather:
      MPI_Allgather_init(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_, none, request);
      break;
    case Operation::alltoall:
      MPI_Alltoall_init(sent_, size_, MPI_BYTE, received_, size_, MPI_BYTE, comm_, none, request);
      break;
    case Operation::reduce_scatter:
      MPI_Reduce_scatter_init(sent_, received_, counts_.data(), MPI_FLOAT, MPI_SUM, comm_, none, request);
      break;
    default: MPI_Barrier_init(comm_, none, request);
  }
}

#else

bool has_persistent_collectives() { return false; }

void MpiOperation::make_collective(MPI_Request*) {
  throw std::runtime_error("this MPI has no persistent collectives");  // refused before
}

#endif

}  // namespace elbowroom

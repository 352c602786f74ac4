// One operation of MPI: a ping-pong, an exchange with neighbours, or a collective; blocking, non-blocking or persistent.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "protocol/overlap.hpp"

namespace elbowroom {

// Whether this MPI has MPI_Allreduce_init and the others of MPI 4.
bool has_persistent_collectives();

class MpiOperation {
 public:
  // `memory` has room for overlap_bytes(); `size` bytes as in a request. Persistent operations are made here: collective.
  MpiOperation(const Overlap& overlap, MPI_Comm comm, int size, char* memory);
  ~MpiOperation();
  MpiOperation(const MpiOperation&) = delete;
  MpiOperation& operator=(const MpiOperation&) = delete;

  // Writes what is sent and overwrites what will be received: all of it, or some places of it. `wrong`: other contents than
  // the others expect, for tests.
  void fill(std::uint64_t seed);
  void stamp(std::uint64_t seed, bool wrong);
  // Whether what had to arrive did, everywhere or at the places that were stamped.
  bool whole_holds(std::uint64_t seed) const;
  bool stamps_hold(std::uint64_t seed) const;

  void call();   // blocking
  void start();  // non-blocking or persistent
  bool test();   // whether what was started is complete; sends the answer of a ping that has arrived
  void wait();

 private:
  static constexpr int kRoot = 0;  // of a broadcast or reduction
  using Check = bool (*)(const void*, std::size_t, std::uint64_t);
  using Write = void (*)(void*, std::size_t, std::uint64_t);

  void write_sent(std::uint64_t seed, Write write);
  void write_received(std::uint64_t seed, Write write);
  bool received_hold(std::uint64_t seed, Check check) const;
  bool scatters() const { return overlap_.operation == Operation::reduce_scatter; }
  // The elements of a reduction's result that this rank receives: first and how many.
  std::pair<std::size_t, std::size_t> own_elements() const;
  float& result(std::size_t element) const { return received_elements()[element - own_elements().first]; }
  bool element_holds(std::size_t element, std::uint64_t seed) const;
  float* sent_elements() const { return reinterpret_cast<float*>(sent_); }
  float* received_elements() const { return reinterpret_cast<float*>(received_); }
  std::vector<std::size_t> own_stamps() const;  // elements of the result that were stamped and that this rank receives
  char* sent_to(int block) const { return sent_ + static_cast<std::ptrdiff_t>(block) * size_; }
  char* received_from(int block) const { return received_ + static_cast<std::ptrdiff_t>(block) * size_; }
  int to(int j) const { return (rank_ + neighbour_offset(j, ranks_)) % ranks_; }
  int from(int j) const { return (rank_ + ranks_ - neighbour_offset(j, ranks_)) % ranks_; }
  bool answers() const { return overlap_.operation == Operation::pingpong && rank_ % 2 == 1; }
  bool idle() const { return overlap_.operation == Operation::pingpong && partner() >= ranks_; }
  int partner() const { return rank_ ^ 1; }

  void start_messages();
  void make_persistent();
  void make_messages();
  void answer();  // the second half of a ping-pong
  void start_collective(MPI_Request* request);
  void make_collective(MPI_Request* request);
  void call_collective();

  const Overlap overlap_;
  const MPI_Comm comm_;
  const int size_;
  char* const sent_;
  char* const received_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t elements_ = 0;  // of a reduction
  std::vector<int> counts_;   // of a reduce-scatter, by rank
  std::vector<MPI_Request> requests_;
  MPI_Request answer_ = MPI_REQUEST_NULL;
  bool to_answer_ = false;
};

}  // namespace elbowroom

// The messages of a mini-kernel: counted, and their contents checked.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "minikernels/pattern.hpp"

namespace elbowroom::minikernels {

class Exchange {
 public:
  Exchange(MPI_Comm all, Check check);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm all() const { return all_; }

  // Sizes are bytes, and multiples of a word (8 bytes).
  void send(int to, std::size_t bytes);
  void receive(int from, std::size_t bytes);
  void send_and_receive(int to, int from, std::size_t bytes);
  // Sums over all ranks of so many values.
  void sum(std::size_t values);
  // The same number of bytes to each rank.
  void to_all(std::size_t bytes);
  // Other numbers to each rank, which are not known to the recipients before.
  void to_all(std::span<const std::size_t> bytes);

  // What this rank passed on to others: messages' bytes, and in sums its own values. A rank alone sends nothing.
  std::uint64_t bytes() const { return bytes_; }
  // One for each recipient; one for a sum.
  std::uint64_t messages() const { return messages_; }
  bool valid() const { return valid_; }

 private:
  void count(std::size_t bytes, std::uint64_t messages);
  std::span<std::uint64_t> outgoing(int to, std::size_t first, std::size_t words);
  void check(int from, std::span<const std::uint64_t> words);

  MPI_Comm all_;
  Check check_;
  int rank_ = 0;
  int size_ = 0;
  std::vector<std::uint64_t> sent_, received_;  // messages to and from each rank
  std::vector<std::uint64_t> out_, in_;
  std::uint64_t bytes_ = 0;
  std::uint64_t messages_ = 0;
  bool valid_ = true;
};

}  // namespace elbowroom::minikernels

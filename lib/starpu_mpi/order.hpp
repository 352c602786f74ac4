// Whether all ranks submitted the same tasks in the same order, as task graphs without a master need. A rank may leave out tasks
// that it neither executes nor has data of; then the transfers between each two ranks must be the same for both.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "messages.hpp"

namespace elbowroom::starpu_mpi {

class Order {
 public:
  explicit Order(Messages& messages);

  // One thread submits.
  void task(std::uint64_t hash, const char* name) { tasks_.push_back({hash, name != nullptr ? name : ""}); }
  void sends(int rank, std::int64_t tag) { sends_[static_cast<std::size_t>(rank)].push_back(tag); }
  void receives(int rank, std::int64_t tag) { receives_[static_cast<std::size_t>(rank)].push_back(tag); }

  // Collective: compares what was noted since the last call. Warns of another order; ends the job where a rank waits for data
  // that its peer does not send.
  void compare();

 private:
  struct Task {
    std::uint64_t hash;
    const char* name;
  };
  std::vector<std::uint64_t> exchange_transfers() const;
  void name_first_task() const;
  void name_differences(const std::vector<std::uint64_t>& announced);
  void name_difference(std::size_t peer, std::vector<std::int64_t> sent) const;

  Messages& messages_;
  std::vector<Task> tasks_;
  std::vector<std::vector<std::int64_t>> sends_, receives_;  // by rank: tags
};

// Of what was hashed before and of one more value.
std::uint64_t hashed(std::uint64_t before, std::uint64_t value);
std::uint64_t hashed(std::uint64_t before, const char* text);

}  // namespace elbowroom::starpu_mpi

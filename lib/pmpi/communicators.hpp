// Communicators, windows: whose ranks are whose, and numbers that all members give a communicator alike, without asking.
//
// Creating a communicator is collective over its parent, so that all members of the parent count creations alike: a new
// number is made of the parent's and that count. Groups of one MPI_Comm_split have the same number, and different members.
#pragma once

#include <mpi.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "pmpi/hooks.hpp"
#include "pmpi/matching.hpp"

namespace elbowroom::pmpi {

// Handles are pointers or integers, by MPI.
template <typename Handle>
std::uintptr_t key_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return static_cast<std::uintptr_t>(static_cast<std::uint32_t>(handle));
  }
}

struct Communicator {
  std::uint32_t number = kForeign;
  int members = 0;            // of its own group
  int span = 0;               // what the tool said of it
  std::vector<int> world;     // ranks of the peers' group in MPI_COMM_WORLD; kNobody for other jobs'
  std::uint32_t created = 0;  // communicators made of it
  SentNumbers sent;
  Matching received;
  // Partitioned operations are matched once, by themselves: how many there were of each peer and tag.
  SentNumbers partitions_sent;
  SentNumbers partitions_received;

  bool foreign() const { return number == kForeign; }
  // kNobody for MPI_PROC_NULL and wildcards, which are below 0.
  int peer(int rank) const {
    if (rank < 0) {
      return kNobody;
    }
    const int known = static_cast<std::size_t>(rank) < world.size() ? world[static_cast<std::size_t>(rank)] : kNobody;
    return known == kNobody ? kElsewhere : known;
  }
};

using CommunicatorPointer = std::shared_ptr<Communicator>;

// Not safe for threads: the caller locks.
class Communicators {
 public:
  // MPI works from now on: MPI_COMM_WORLD and MPI_COMM_SELF.
  void start();
  // Never null: a foreign one where it is not known.
  const CommunicatorPointer& find(MPI_Comm handle);
  // A number for a communicator made of `parent` by all its members together.
  static std::uint32_t number_for_child(Communicator& parent);
  // The same where only the processes of `group` took part, or two groups: told apart by their members and `tag`.
  std::uint32_t number_for_group(std::uint32_t parent, const std::vector<int>& world, int tag);
  // `handle`, if it is not null, is a new communicator.
  void add(MPI_Comm handle, std::uint32_t number);
  void remove(MPI_Comm handle);

  std::vector<int> world_ranks(MPI_Group group) const;
  // Of its own group, whatever it is.
  std::vector<int> own_ranks(MPI_Comm handle) const;

 private:
  std::unordered_map<std::uintptr_t, CommunicatorPointer> known_;
  std::unordered_map<std::uint64_t, std::uint32_t> groups_;  // communicators made of each group
  std::uintptr_t last_key_ = 0;
  CommunicatorPointer last_;
  CommunicatorPointer foreign_ = std::make_shared<Communicator>();
  MPI_Group world_group_ = MPI_GROUP_NULL;
};

}  // namespace elbowroom::pmpi

// Communicators, windows: whose ranks are whose, and numbers that all members give a communicator alike, without asking.
//
// Creating a communicator is collective over its parent, so that all members of the parent count creations alike: a new
// number is made of the parent's and that count. Groups of one MPI_Comm_split have the same number, and different members.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "pmpi/hooks.hpp"
#include "pmpi/matching.hpp"
#include "pmpi/mpi.hpp"

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

// Ranks of MPI_COMM_WORLD: as a rule (first, first + step, ...) where they follow one, as most communicators' do.
class Ranks {
 public:
  Ranks() = default;
  explicit Ranks(const std::vector<int>& world);
  int size() const { return size_; }
  // kNobody for a rank that is not there, and for other jobs'.
  int operator[](int rank) const {
    if (rank < 0 || rank >= size_) {
      return kNobody;
    }
    return listed_ == nullptr ? first_ + rank * step_ : (*listed_)[static_cast<std::size_t>(rank)];
  }
  // Holds the same list as `other`, if they are equal.
  void share(const Ranks& other);

 private:
  int size_ = 0;
  int first_ = 0;
  int step_ = 0;
  std::shared_ptr<const std::vector<int>> listed_;  // NULL: they follow the rule
};

struct Communicator {
  std::uint32_t number = kForeign;
  int members = 0;            // of its own group
  int span = 0;               // what the tool said of it
  Ranks world;                // of the peers' group
  std::uint32_t created = 0;  // communicators made of it
  Counts sent;
  Matching received;
  // Partitioned operations are matched once, by themselves: how many there were of each peer and tag.
  Counts partitions_sent;
  Counts partitions_received;

  bool foreign() const { return number == kForeign; }
  // kNobody for MPI_PROC_NULL and wildcards, which are below 0; kElsewhere for processes of other jobs.
  int peer(int rank) const {
    const int known = world[rank];
    return rank >= 0 && known == kNobody ? kElsewhere : known;
  }
};

using CommunicatorPointer = std::shared_ptr<Communicator>;

// What MPI and the tool say of a communicator; NULL for MPI_COMM_NULL.
CommunicatorPointer describe(MPI_Comm handle, std::uint32_t number);
// All processes of the job, of MPI_COMM_WORLD or a session; MPI_GROUP_NULL where neither is there. The caller frees it.
MPI_Group world_group();
// Ranks in it, kNobody for other jobs'; those of a communicator's own group.
std::vector<int> world_ranks(MPI_Group group);
std::vector<int> own_ranks(MPI_Comm handle);

// Not safe for threads: the caller locks.
class Communicators {
 public:
  // Never null: a foreign one where it is not known.
  const CommunicatorPointer& find(MPI_Comm handle);
  // A number for a communicator made of `parent` by all its members together.
  static std::uint32_t number_for_child(Communicator& parent);
  // The same where only the processes of `group` took part, or two groups: told apart by their members and `tag`.
  std::uint32_t number_for_group(std::uint32_t parent, const std::vector<int>& world, int tag);
  // `handle` is a new communicator.
  void add(MPI_Comm handle, CommunicatorPointer communicator);
  void remove(MPI_Comm handle);

 private:
  std::unordered_map<std::uintptr_t, CommunicatorPointer> known_;
  std::unordered_map<std::uint64_t, std::uint32_t> groups_;  // communicators made of each group
  std::uintptr_t last_key_ = 0;
  CommunicatorPointer last_;
  CommunicatorPointer foreign_ = std::make_shared<Communicator>();
};

}  // namespace elbowroom::pmpi

#include "pmpi/communicators.hpp"

#include <algorithm>
#include <numeric>

namespace elbowroom::pmpi {
namespace {

constexpr std::uint64_t kSeed = 0xCBF29CE484222325U;

// FNV-1a of 64 bits, by words: alike on every process.
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) {
    hash = (hash ^ ((word >> (8 * byte)) & 0xFF)) * 0x100000001B3U;
  }
  return hash;
}

// MPI_COMM_WORLD's, MPI_COMM_SELF's and the foreign ones' numbers are nobody else's.
std::uint32_t folded(std::uint64_t hash) {
  const auto number = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  return number < 2 || number == kForeign ? 2 : number;
}

}  // namespace

Ranks::Ranks(const std::vector<int>& world) : size_(static_cast<int>(world.size())) {
  if (world.empty()) {
    return;
  }
  first_ = world[0];
  step_ = world.size() > 1 ? world[1] - world[0] : 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (world[static_cast<std::size_t>(rank)] != first_ + rank * step_) {
      listed_ = std::make_shared<const std::vector<int>>(world);
      return;
    }
  }
}

void Ranks::share(const Ranks& other) {
  if (listed_ != nullptr && other.listed_ != nullptr && *listed_ == *other.listed_) {
    listed_ = other.listed_;
  }
}

CommunicatorPointer describe(MPI_Comm handle, std::uint32_t number) {
  if (handle == MPI_COMM_NULL) {
    return nullptr;
  }
  auto communicator = std::make_shared<Communicator>();
  communicator->number = number;
  int inter = 0;
  PMPI_Comm_test_inter(handle, &inter);
  PMPI_Comm_size(handle, &communicator->members);
  MPI_Group group = MPI_GROUP_NULL;
  (inter != 0 ? PMPI_Comm_remote_group : PMPI_Comm_group)(handle, &group);
  const std::vector<int> ranks = world_ranks(group);
  PMPI_Group_free(&group);
  communicator->world = Ranks(ranks);
  communicator->span = tool_communicator(ranks, number == kForeign ? 0 : communicator->members);
  return communicator;
}

const CommunicatorPointer& Communicators::find(MPI_Comm handle) {
  const std::uintptr_t key = key_of(handle);
  if (last_ != nullptr && key == last_key_) {
    return last_;
  }
  const auto entry = known_.find(key);
  if (entry == known_.end()) {
    return foreign_;
  }
  last_key_ = key;
  last_ = entry->second;
  return last_;
}

std::uint32_t Communicators::number_for_child(Communicator& parent) {
  if (parent.foreign()) {
    return kForeign;
  }
  return folded(mix(mix(kSeed, parent.number), ++parent.created));
}

std::uint32_t Communicators::number_for_group(std::uint32_t parent, const std::vector<int>& world, int tag) {
  if (parent == kForeign || std::find(world.begin(), world.end(), kNobody) != world.end()) {
    return kForeign;
  }
  std::uint64_t hash = mix(mix(kSeed, parent), static_cast<std::uint32_t>(tag));
  for (const int rank : world) {
    hash = mix(hash, static_cast<std::uint32_t>(rank));
  }
  return folded(mix(hash, ++groups_[hash]));
}

void Communicators::add(MPI_Comm handle, CommunicatorPointer communicator) {
  for (const auto& [key, known] : known_) {
    communicator->world.share(known->world);
  }
  if (key_of(handle) == last_key_) {
    last_ = nullptr;
  }
  known_[key_of(handle)] = std::move(communicator);
}

// Requests may still be under way on it: they keep what they need.
void Communicators::remove(MPI_Comm handle) {
  if (key_of(handle) == last_key_) {
    last_ = nullptr;
  }
  known_.erase(key_of(handle));
}

std::vector<int> world_ranks(MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> own(static_cast<std::size_t>(size));
  std::vector<int> world(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group all = world_group();
  if (all == MPI_GROUP_NULL) {
    return std::vector<int>(own.size(), kNobody);
  }
  PMPI_Group_translate_ranks(group, size, own.data(), all, world.data());
  PMPI_Group_free(&all);
  std::replace(world.begin(), world.end(), MPI_UNDEFINED, kNobody);
  return world;
}

std::vector<int> own_ranks(MPI_Comm handle) {
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(handle, &group);
  std::vector<int> ranks = world_ranks(group);
  PMPI_Group_free(&group);
  return ranks;
}

}  // namespace elbowroom::pmpi

#include "order.hpp"

#include <algorithm>
#include <array>

namespace elbowroom::starpu_mpi {

std::uint64_t hashed(std::uint64_t before, std::uint64_t value) {
  value = (before ^ value) * 0xBF58476D1CE4E5B9U;
  return value ^ (value >> 31);
}

std::uint64_t hashed(std::uint64_t before, const char* text) {
  for (; text != nullptr && *text != '\0'; ++text) before = hashed(before, static_cast<unsigned char>(*text));
  return before;
}

namespace {

// For each rank, the number of transfers, and the sum of their tags' hashes in any order.
std::vector<std::uint64_t> noted(const std::vector<std::vector<std::int64_t>>& tags_of_ranks) {
  std::vector<std::uint64_t> result;
  for (const auto& tags : tags_of_ranks) {
    result.push_back(tags.size());
    std::uint64_t& sum = result.emplace_back(0);
    for (const std::int64_t tag : tags) sum += hashed(1, static_cast<std::uint64_t>(tag));
  }
  return result;
}

}  // namespace

Order::Order(Messages& messages)
    : messages_(messages),
      sends_(static_cast<std::size_t>(messages.size())),
      receives_(static_cast<std::size_t>(messages.size())) {}

void Order::compare() {
  const std::vector<std::uint64_t> announced = exchange_transfers();
  // The number of tasks, their sum in any order, and their hash in this one; the complement of each; whether transfers differ.
  std::array<std::uint64_t, 7> most{tasks_.size(), 0, 0, 0, 0, 0, 0};
  for (const Task& task : tasks_) {
    most[1] += task.hash;
    most[2] = hashed(most[2], task.hash);
  }
  for (std::size_t i = 0; i < 3; ++i) most[i + 3] = ~most[i];
  most[6] = announced == noted(receives_) ? 0 : 1;
  messages_.collective([&](MPI_Comm on) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_UINT64_T, MPI_MAX, on, &request);
    return request;
  });
  const auto same = [&](std::size_t i) { return most[i] == ~most[i + 3]; };
  // Where a rank submitted other tasks, it may have left out what is not its own.
  if (same(0) && same(1) && !same(2)) name_first_task();
  if (most[6] != 0) name_differences(announced);
  tasks_.clear();
  for (auto& tags : sends_) tags.clear();
  for (auto& tags : receives_) tags.clear();
}

// Where this rank's order differs from rank 0's.
void Order::name_first_task() const {
  std::vector<std::uint64_t> first;
  for (const Task& task : tasks_) first.push_back(task.hash);
  messages_.collective([&](MPI_Comm on) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(first.data(), static_cast<int>(first.size()), MPI_UINT64_T, 0, on, &request);
    return request;
  });
  const auto differs = std::mismatch(tasks_.begin(), tasks_.end(), first.begin(),
                                     [](const Task& task, std::uint64_t hash) { return task.hash == hash; });
  if (differs.first == tasks_.end()) return;
  messages_.warn("task " + std::to_string(differs.first - tasks_.begin()) +
                 " since the last starpu_mpi_wait_for_all (" +
                 (*differs.first->name != '\0' ? differs.first->name : "without a name") +
                 ") is another one than on rank 0: the same tasks were submitted in another order, and results may be "
                 "wrong; submit them in the same order on all ranks");
}

// What the other ranks say that they send to this one.
std::vector<std::uint64_t> Order::exchange_transfers() const {
  const std::vector<std::uint64_t> sent = noted(sends_);
  std::vector<std::uint64_t> announced(sent.size());
  messages_.collective([&](MPI_Comm on) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(sent.data(), 2, MPI_UINT64_T, announced.data(), 2, MPI_UINT64_T, on, &request);
    return request;
  });
  return announced;
}

// Gets the tags that the others send to this rank.
void Order::name_differences(const std::vector<std::uint64_t>& announced) {
  const std::size_t size = sends_.size();
  std::vector<std::int64_t> out;
  std::vector<int> out_counts(size), out_places(size), in_counts(size), in_places(size);
  int total = 0;
  for (std::size_t peer = 0; peer < size; ++peer) {
    out_places[peer] = static_cast<int>(out.size());
    out_counts[peer] = static_cast<int>(sends_[peer].size());
    out.insert(out.end(), sends_[peer].begin(), sends_[peer].end());
    in_places[peer] = total;
    in_counts[peer] = static_cast<int>(announced[2 * peer]);
    total += in_counts[peer];
  }
  std::vector<std::int64_t> in(static_cast<std::size_t>(total));
  messages_.collective([&](MPI_Comm on) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallv(out.data(), out_counts.data(), out_places.data(), MPI_INT64_T, in.data(), in_counts.data(),
                   in_places.data(), MPI_INT64_T, on, &request);
    return request;
  });
  for (std::size_t peer = 0; peer < size; ++peer) {
    const auto first = in.begin() + in_places[peer];
    name_difference(peer, {first, first + in_counts[peer]});
  }
  messages_.collective([](MPI_Comm on) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(on, &request);
    return request;
  });
  messages_.fail("the ranks submitted different tasks; submit the same tasks in the same order on all ranks");
}

void Order::name_difference(std::size_t peer, std::vector<std::int64_t> sent) const {
  std::vector<std::int64_t> expected = receives_[peer];
  std::sort(sent.begin(), sent.end());
  std::sort(expected.begin(), expected.end());
  const auto [unsent, unexpected] = std::mismatch(
      expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(std::min(sent.size(), expected.size())),
      sent.begin());
  if (unsent == expected.end() && unexpected == sent.end()) return;
  const bool waits = unexpected == sent.end() || (unsent != expected.end() && *unsent < *unexpected);
  messages_.warn(
      "data with tag " + std::to_string(waits ? *unsent : *unexpected) + " of rank " + std::to_string(peer) +
      (waits ? ": a task of this rank reads them, but rank " + std::to_string(peer) + " submitted none that does"
             : ": are sent to this rank, which submitted no task that reads them"));
}

}  // namespace elbowroom::starpu_mpi

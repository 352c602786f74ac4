#include "protocol/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace elbowroom {
namespace {

constexpr std::int64_t kFewestInWindow = 5;
constexpr std::int64_t kMostInWindow = 50;
constexpr double kNsPerSecond = 1e9;
constexpr std::uint64_t kLargePrime = 1'000'003;
constexpr std::uint64_t kValues = 61;  // different contributions of a rank
constexpr std::uint64_t kRanks = 7;    // after so many ranks contributions repeat
constexpr std::size_t kStamps = 16;

double seconds(std::int64_t ns) { return std::round(static_cast<double>(ns)) / kNsPerSecond; }

}  // namespace

std::string name_of(Operation operation) {
  switch (operation) {
    case Operation::pingpong: return "pingpong";
    case Operation::exchange: return "exchange";
    case Operation::bcast: return "bcast";
    case Operation::reduce: return "reduce";
    case Operation::allreduce: return "allreduce";
    case Operation::allgather: return "allgather";
    case Operation::alltoall: return "alltoall";
    case Operation::reduce_scatter: return "reduce_scatter";
    case Operation::barrier: return "barrier";
  }
  return "";
}

std::string name_of(Form form) {
  return form == Form::blocking ? "blocking" : form == Form::nonblocking ? "nonblocking" : "persistent";
}

bool is_collective(Operation operation) { return operation != Operation::pingpong && operation != Operation::exchange; }

bool reduces(Operation operation) {
  return operation == Operation::reduce || operation == Operation::allreduce || operation == Operation::reduce_scatter;
}

OverlapBytes overlap_bytes(const Overlap& overlap, std::int64_t size, int ranks) {
  switch (overlap.operation) {
    case Operation::exchange: return {size * overlap.neighbours, size * overlap.neighbours};
    case Operation::allgather: return {size, size * ranks};
    case Operation::alltoall: return {size * ranks, size * ranks};
    case Operation::barrier: return {};
    default: return {size, size};
  }
}

int neighbour_offset(int j, int ranks) {
  const int distance = 1 + (j / 2) % (ranks - 1);
  return j % 2 == 0 ? distance : ranks - distance;
}

std::vector<Kind> iteration_order(std::int64_t iterations, bool computing) {
  std::vector<Kind> order;
  for (std::int64_t i = 0; i < iterations; ++i) {
    if (!computing) {
      order.push_back(Kind::message);
    } else if (i % 2 == 0) {
      order.insert(order.end(), kKinds.begin(), kKinds.end());
    } else {
      order.insert(order.end(), kKinds.rbegin(), kKinds.rend());
    }
  }
  return order;
}

std::int64_t iterations_in(double window, double seconds) {
  const double wanted = seconds > 0 ? std::floor(window / seconds) : static_cast<double>(kMostInWindow);
  return static_cast<std::int64_t>(
      std::clamp(wanted, static_cast<double>(kFewestInWindow), static_cast<double>(kMostInWindow)));
}

std::int64_t ClockPair::common(std::int64_t local) const {
  const auto length = static_cast<double>(local_after - local_before);
  const double share = length > 0 ? static_cast<double>(local - local_before) / length : 0;
  return local + offset_before +
         static_cast<std::int64_t>(std::llround(share * static_cast<double>(offset_after - offset_before)));
}

std::vector<double> durations(const std::vector<std::vector<Visit>>& visits) {
  std::vector<double> all;
  for (const std::vector<Visit>& iteration : visits) {
    std::int64_t arrival = std::numeric_limits<std::int64_t>::min();
    std::int64_t departure = arrival;
    for (const Visit& visit : iteration) {
      arrival = std::max(arrival, visit.enter);
      departure = std::max(departure, visit.leave);
    }
    all.push_back(seconds(departure - arrival));
  }
  return all;
}

std::vector<double> inner_durations(const std::vector<std::vector<Visit>>& visits) {
  std::vector<double> all;
  for (const std::vector<Visit>& iteration : visits) {
    std::int64_t longest = 0;
    for (const Visit& visit : iteration) {
      longest = std::max(longest, visit.computed - visit.posted);
    }
    all.push_back(seconds(longest));
  }
  return all;
}

bool barrier_holds(const std::vector<Visit>& iteration, std::int64_t bound) {
  std::int64_t arrival = std::numeric_limits<std::int64_t>::min();
  std::int64_t departure = std::numeric_limits<std::int64_t>::max();
  for (const Visit& visit : iteration) {
    arrival = std::max(arrival, visit.enter);
    departure = std::min(departure, visit.leave);
  }
  return departure + bound >= arrival;
}

std::uint64_t message_seed(std::uint64_t seed, int from, int to) {
  return (static_cast<std::uint64_t>(from) * kLargePrime + static_cast<std::uint64_t>(to)) * kLargePrime + seed;
}

std::vector<std::size_t> stamped_elements(std::size_t count) {
  std::vector<std::size_t> elements;
  const std::size_t stamps = std::min(count, kStamps);
  for (std::size_t i = 0; i < stamps; ++i) {
    elements.push_back(stamps == 1 ? 0 : i * (count - 1) / (stamps - 1));
  }
  return elements;
}

float contribution(std::size_t element, int rank, std::uint64_t seed) {
  return static_cast<float>((element + seed) % kValues + static_cast<std::uint64_t>(rank) % kRanks + 1);
}

float contributions(std::size_t element, int ranks, std::uint64_t seed) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum += contribution(element, rank, seed);
  }
  return sum;
}

std::pair<std::size_t, std::size_t> share_of(std::size_t count, int rank, int ranks) {
  const auto own = static_cast<std::size_t>(rank);
  const auto all = static_cast<std::size_t>(ranks);
  const std::size_t first = own * count / all;
  return {first, (own + 1) * count / all - first};
}

}  // namespace elbowroom

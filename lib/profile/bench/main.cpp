// network-bench: what n senders of a node get together, to another node and within the node. Rank 0 reads one JSON document,
// a line of standard input, and prints one (docs/reference/profile-quantities.md).
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi_document.hpp"

namespace elbowroom::network_bench {
namespace {

// Concurrent senders of a node: how fast they are together, to another node and within the node.
// Ranks of the first two nodes, in the order of MPI_COMM_WORLD. `second` is empty where all ranks are on one node.
struct Nodes {
  std::vector<int> first;
  std::vector<int> second;
  int count = 1;
};

struct Case {
  std::size_t size = 0;  // bytes of a message
  int senders = 1;
  bool inside = false;  // within the first node
  bool both = false;    // as many of the other node send to the first one at the same time
};

// A pair of ranks.
struct Pair {
  int sender;
  int receiver;
  bool both = false;  // both send
};

constexpr int kTag = 1;
constexpr int kDone = 2;
constexpr int kInFlight = 2;
constexpr int kPilot = 4;                         // messages before it is known how many fill the time
constexpr std::size_t kMostMessages = 1U << 24U;  // messages of one sender

int rank_of(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}

// The lowest rank of this rank's node.
int lowest_neighbour(int rank) {
  const char* const emulated = std::getenv("ELBOW_NIC_RANKS_PER_NODE");
  if (emulated != nullptr && std::atoi(emulated) > 0) return rank / std::atoi(emulated) * std::atoi(emulated);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int lowest = rank;
  MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  return lowest;
}

// One end of a pair: messages that leave, and messages that come, two of each in flight.
class End {
 public:
  End(int peer, std::size_t size, bool sends, bool receives)
      : peer_(peer),
        sends_(sends),
        receives_(receives),
        out_(sends ? size : 0, 'x'),
        in_(receives ? kInFlight * size : 0) {}

  // Until the last message has come at its receiver.
  void exchange(std::size_t count) {
    MPI_Request requests[2 * kInFlight];
    std::fill(std::begin(requests), std::end(requests), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < count; ++i) {
      MPI_Request* const slot = requests + 2 * (i % kInFlight);
      MPI_Waitall(2, slot, MPI_STATUSES_IGNORE);
      post(slot, i % kInFlight);
    }
    MPI_Waitall(2 * kInFlight, requests, MPI_STATUSES_IGNORE);
    char done = 0;
    if (receives_) MPI_Send(&done, 1, MPI_BYTE, peer_, kDone, MPI_COMM_WORLD);
    if (sends_) MPI_Recv(&done, 1, MPI_BYTE, peer_, kDone, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

 private:
  void post(MPI_Request* slot, std::size_t which) {
    if (receives_) {
      const std::size_t size = in_.size() / kInFlight;
      MPI_Irecv(in_.data() + which * size, static_cast<int>(size), MPI_BYTE, peer_, kTag, MPI_COMM_WORLD, slot);
    }
    if (sends_) {
      MPI_Isend(out_.data(), static_cast<int>(out_.size()), MPI_BYTE, peer_, kTag, MPI_COMM_WORLD, slot + 1);
    }
  }

  int peer_;
  bool sends_;
  bool receives_;
  std::vector<char> out_;
  std::vector<char> in_;
};

// What this rank does in a case, if anything.
std::optional<End> end_of(const std::vector<Pair>& pairs, const Case& one) {
  const int rank = rank_of(MPI_COMM_WORLD);
  for (const Pair& pair : pairs) {
    if (pair.sender == rank) return End(pair.receiver, one.size, true, pair.both);
    if (pair.receiver == rank) return End(pair.sender, one.size, pair.both, true);
  }
  return std::nullopt;
}

// s until the slowest pair is through; on all ranks.
double time(std::optional<End>& end, std::size_t count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  if (end) end->exchange(count);
  double took = end ? MPI_Wtime() - begun : 0;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

// By MPI_Comm_split_type; with ELBOW_NIC_RANKS_PER_NODE (docs/reference/nic.md), rank r is on node r / that.
Nodes find_nodes() {
  const int own = lowest_neighbour(rank_of(MPI_COMM_WORLD));
  std::vector<int> lowest(static_cast<std::size_t>(size_of(MPI_COMM_WORLD)));
  MPI_Allgather(&own, 1, MPI_INT, lowest.data(), 1, MPI_INT, MPI_COMM_WORLD);
  Nodes nodes;
  int second = -1;
  for (int rank = 0; rank < static_cast<int>(lowest.size()); ++rank) {
    const int node = lowest[static_cast<std::size_t>(rank)];
    nodes.count += node == rank && rank != 0 ? 1 : 0;
    if (node != 0 && second < 0) second = node;
    if (node == 0) nodes.first.push_back(rank);
    if (node == second && node != 0) nodes.second.push_back(rank);
  }
  return nodes;
}

// Sender i of the first node sends to rank i of the second, or to its neighbour on the first node. Empty where there are
// not so many ranks. The other direction has ranks of its own where there are enough: in a rank that sends and receives,
// messages wait for each other inside MPI.
std::vector<Pair> pairs_of(const Nodes& nodes, const Case& one) {
  const auto senders = static_cast<std::size_t>(one.senders);
  const std::size_t available = std::min(nodes.first.size(), nodes.second.size());
  std::vector<Pair> pairs;
  if (one.inside ? 2 * senders > nodes.first.size() : senders > available) return pairs;
  const bool separate = one.both && 2 * senders <= available;
  for (std::size_t i = 0; i < senders; ++i) {
    if (one.inside) {
      pairs.push_back({nodes.first[2 * i], nodes.first[2 * i + 1]});
      continue;
    }
    pairs.push_back({nodes.first[i], nodes.second[i], one.both && !separate});
    if (separate) pairs.push_back({nodes.second[senders + i], nodes.first[senders + i]});
  }
  return pairs;
}

// B/s of all pairs together, in each direction: `seconds` of messages, two in flight for each sender; on all ranks.
double measure_bandwidth(const std::vector<Pair>& pairs, const Case& one, double seconds) {
  std::optional<End> end = end_of(pairs, one);
  const double pilot = time(end, kPilot);
  const double wanted = std::ceil(seconds / std::max(pilot / kPilot, 1e-9));
  const auto count = static_cast<std::size_t>(std::clamp(wanted, 2.0 * kInFlight, static_cast<double>(kMostMessages)));
  const double took = time(end, count);
  return static_cast<double>(one.senders) * static_cast<double>(count) * static_cast<double>(one.size) / took;
}

// Half the time of a message of 4 B there and back between the first ranks of both nodes, s: the median of `exchanges`.
// On all ranks; below 0 where there is one node.
double measure_latency(const Nodes& nodes, int exchanges) {
  if (nodes.second.empty()) return -1;
  const int rank = rank_of(MPI_COMM_WORLD);
  const int ends[] = {nodes.first[0], nodes.second[0]};
  double latency = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ends[0] || rank == ends[1]) {
    std::vector<double> times;
    int message = 0;
    for (int i = 0; i < exchanges; ++i) {
      const double begun = MPI_Wtime();
      for (const int sender : ends) {
        if (rank == sender)
          MPI_Send(&message, 1, MPI_INT, ends[rank == ends[0]], kTag, MPI_COMM_WORLD);
        else
          MPI_Recv(&message, 1, MPI_INT, sender, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      times.push_back((MPI_Wtime() - begun) / 2);
    }
    std::nth_element(times.begin(), times.begin() + exchanges / 2, times.end());
    latency = times[static_cast<std::size_t>(exchanges) / 2];
  }
  MPI_Bcast(&latency, 1, MPI_DOUBLE, ends[0], MPI_COMM_WORLD);
  return latency;
}

using nlohmann::json;

struct Request {
  std::vector<Case> cases;
  int repeat = 5;
  double seconds = 0.1;  // of each measurement
  int exchanges = 200;   // for the latency
};

Request read(const std::string& text) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // bytes: counts are int
  const json document = json::parse(text);
  Request request;
  request.repeat = document.value("repeat", request.repeat);
  request.seconds = document.value("seconds", request.seconds);
  if (request.repeat < 1 || request.seconds <= 0) throw std::runtime_error("repeat and seconds must be above 0");
  for (const json& object : document.at("cases")) {
    Case one;
    one.size = object.at("size");
    one.senders = object.at("senders");
    one.inside = object.value("inside", false);
    one.both = object.value("both", false);
    if (one.size < 1 || one.size > kMost || one.senders < 1) throw std::runtime_error("size or senders out of range");
    request.cases.push_back(one);
  }
  return request;
}

// All cases take turns, repetition by repetition. A case without enough ranks has no bandwidth.
json measure(const Request& request) {
  const Nodes nodes = find_nodes();
  std::vector<std::vector<double>> bandwidths(request.cases.size());
  for (int round = 0; round < request.repeat; ++round) {
    for (std::size_t i = 0; i < request.cases.size(); ++i) {
      const std::vector<Pair> pairs = pairs_of(nodes, request.cases[i]);
      if (!pairs.empty()) bandwidths[i].push_back(measure_bandwidth(pairs, request.cases[i], request.seconds));
    }
  }
  const double latency = measure_latency(nodes, request.exchanges);
  return {{"nodes", nodes.count},
          {"ranks", {nodes.first.size(), nodes.second.size()}},
          {"bandwidths", bandwidths},
          {"latency", latency < 0 ? json() : json(latency)}};
}

}  // namespace
}  // namespace elbowroom::network_bench

int main(int argc, char** argv) {
  return elbowroom::answer_document(argc, argv, [](const std::string& text) {
    return elbowroom::network_bench::measure(elbowroom::network_bench::read(text));
  });
}

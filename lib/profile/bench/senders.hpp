// Concurrent senders of a node: how fast they are together, to another node and within the node.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace elbowroom::network_bench {

// Ranks of the first two nodes, in the order of MPI_COMM_WORLD. `second` is empty where all ranks are on one node.
struct Nodes {
  std::vector<int> first;
  std::vector<int> second;
  int count = 1;
};

// By MPI_Comm_split_type; with ELBOW_NIC_RANKS_PER_NODE (docs/reference/nic.md), rank r is on node r / that.
Nodes find_nodes();

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

// Sender i of the first node sends to rank i of the second, or to its neighbour on the first node. Empty where there are
// not so many ranks. The other direction has ranks of its own where there are enough: in a rank that sends and receives,
// messages wait for each other inside MPI.
std::vector<Pair> pairs_of(const Nodes& nodes, const Case& one);

// B/s of all pairs together, in each direction: `seconds` of messages, two in flight for each sender; on all ranks.
double measure_bandwidth(const std::vector<Pair>& pairs, const Case& one, double seconds);

// Half the time of a message of 4 B there and back between the first ranks of both nodes, s: the median of `exchanges`.
// On all ranks; below 0 where there is one node.
double measure_latency(const Nodes& nodes, int exchanges);

}  // namespace elbowroom::network_bench

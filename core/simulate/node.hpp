// What is simulated: a node as stations with times per line, and who sends lines through them. Times are picoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/wheel.hpp"

namespace elbowroom::simulate {

inline constexpr int kLine = 64;          // bytes of a request
inline constexpr int kMostAccesses = 8;   // in a kernel's pattern
inline constexpr int kMostChannels = 64;  // of a controller

// All sockets, links and controllers are alike. A channel is one of a memory controller's, with banks and queues of its
// own; `lines_per_channel` lines in a row lie in one channel, `lines_per_row` of them in one row of a bank.
struct Node {
  int sockets = 1;
  int nodes_per_socket = 1;
  Time uplink_read = 0;
  Time uplink_write = 0;
  Time link_line = 0;
  Time link_request = 0;
  int link_credits = 1;
  Time root_line = 0;
  int channels = 1;
  int banks = 1;
  int lines_per_channel = 4;
  int lines_per_row = 128;
  Time row = 0;
  Time read_line = 0;
  Time write_line = 0;
  Time turnaround = 0;
  int write_batch = 1;
  int read_queue = 1;
  int write_queue = 1;
  int lookahead = 1;
  bool round_robin = false;

  int nodes() const { return sockets * nodes_per_socket; }
};

// 'R' a line is read, 'N' written without being read, 'W' read and then written back.
enum class Access : std::uint8_t { read, store, allocate, write_back };

// Delays of an idle way, without the time that its stations take: to the first memory controller or link, over the
// link, and back to the source.
struct Way {
  Time forward = 0;
  Time hop = 0;
  Time back = 0;
};

// Messages of `lines` lines one after the other, in `threads` threads at a time. Between two messages a thread reads
// `accesses` lines one after the other from `socket`, and then takes `pause`.
struct Messages {
  int lines = 1;
  int threads = 1;
  int accesses = 0;
  Time pause = 0;
  int socket = 0;
  Way way;
};

// `count` alike cores, or one device behind the root complex of its socket, each with at most `window` lines under way.
// A line is asked for at most every `interval`, and takes the source `think` before the next one is asked for.
struct Source {
  bool device = false;
  int count = 1;
  int socket = 0;
  int node = 0;
  int window = 1;
  std::vector<Access> pattern;
  Time interval = 0;
  Time think = 0;
  Way read;
  Way write;
  double memory_work = 1.0;  // what a line costs a channel and an uplink, relative to a plain one
  double uplink_work = 1.0;
  std::optional<Messages> messages;
};

struct Experiment {
  std::uint64_t seed = 1;
  Time warm = 10'000'000;
  Time measure = 40'000'000;
  double jitter = 0.0;  // of intervals and thinking, relative, evenly to both sides
  std::vector<Source> sources;
};

// One for each source of the experiment, in order. `messages` is how many ended while it was measured.
struct SourceResult {
  std::uint64_t lines = 0;
  std::uint64_t messages = 0;
  double mean_latency = 0;
  double d9_latency = 0;
};

// Shares of the measured time that each station was in use; links by from * sockets + to.
struct Result {
  std::vector<SourceResult> sources;
  std::vector<double> uplinks;
  std::vector<double> links;
  std::vector<double> roots;
  std::vector<double> memories;
  std::uint64_t requests = 0;  // all that were completed, those before it was measured too
};

}  // namespace elbowroom::simulate

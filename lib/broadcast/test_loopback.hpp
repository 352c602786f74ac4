// Ranks of one process, for tests: messages take random times, transfers of data overtake each other, and ranks may be lost.
// The same seed gives the same course.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "transport.hpp"

namespace elbowroom::broadcast {

class LoopbackNetwork {
 public:
  // Without `jitter`, everything takes the same time.
  explicit LoopbackNetwork(int size, std::uint64_t seed, bool jitter = true, std::uint32_t channels = 1000);
  ~LoopbackNetwork();

  Transport& endpoint(int rank);
  double now() const { return now_; }

  // Lets the next thing happen and returns the rank that it happens to; -1 where nothing is left to happen.
  int step();
  void lose(int rank);
  // The next control messages have a byte changed with this probability.
  void damage(double probability) { damage_ = probability; }
  // Transfers that were asked for and neither happened nor were given up.
  std::size_t pending() const;

 private:
  class Endpoint;
  struct Pending;
  struct Transfer;

  double delay();
  void schedule(double at, Pending pending);
  void try_transfer(int from, int to, std::uint32_t channel);

  std::mt19937_64 random_;
  bool jitter_;
  std::uint32_t channels_;
  double now_ = 0;
  double damage_ = 0;
  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::map<std::pair<double, std::uint64_t>, Pending> pending_;
  std::map<std::pair<int, int>, double> last_control_;
  std::map<std::tuple<int, int, std::uint32_t>, Transfer> transfers_;
  std::vector<bool> lost_;
};

}  // namespace elbowroom::broadcast

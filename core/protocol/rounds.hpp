// Rounds of work that one thread begins and several others take part in, at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace elbowroom {

// Between rounds the others yield, so that they begin without being woken; while they rest they are blocked, and their cores
// are idle.
class Rounds {
 public:
  // Before the others start: how many there are.
  void open(std::size_t others);
  // For all of them: begins a round with a share for each.
  void begin(std::int64_t share);
  // Whether all have done their share of the round.
  bool over() const { return working_.load(std::memory_order_acquire) == 0; }
  // Between rounds. Both return when it is so for all of them.
  void rest();
  void wake();
  // There are no more rounds; those that rest wake up.
  void close();

  // For one of the others, which counts rounds from 0 in `round`: waits for the next one, and gives its share; below 0 when
  // there are no more.
  std::int64_t next(std::uint64_t& round);
  void done() { working_.fetch_sub(1, std::memory_order_release); }

 private:
  static constexpr std::int64_t kNoMore = -1;

  void set_resting(bool resting);

  std::size_t others_ = 0;
  std::atomic<std::uint64_t> round_{0};
  std::atomic<std::int64_t> share_{0};
  std::atomic<std::size_t> working_{0};
  std::atomic<bool> resting_{false};
  std::atomic<std::size_t> blocked_{0};
};

}  // namespace elbowroom

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace elbowroom::events {

// What this reader leaves to the slower one of elbowroom, which answers with a sentence on the damage.
struct Declined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The bytes of a file in blocks; a compressed one is inflated by a thread of its own.
class Source {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 18;  // what simdjson makes of one stays in a core's cache

  explicit Source(const std::string& path);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Appends the next block; false at the end.
  bool append_to(std::string& buffer);

  // Why the bytes end early, after the last block; empty: they do not.
  const std::string& doubt() const { return failure_; }

 private:
  static constexpr std::size_t kWaiting = 4;  // blocks that the thread is ahead, at most

  void inflate();
  void inflate_members();
  bool hand_over(std::vector<char>&& block, std::size_t size);
  std::size_t read(std::uint8_t* to, std::size_t size);

  int file_ = -1;
  std::string first_;  // bytes that were read to recognise the file, which may be a pipe
  bool compressed_ = false;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<char>> blocks_;
  bool done_ = false;
  bool stopped_ = false;
  std::string failure_;
};

}  // namespace elbowroom::events

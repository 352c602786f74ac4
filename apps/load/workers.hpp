// The threads of the load: one on each core, with arrays of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "machine/machine.hpp"

namespace elbowroom::load {

// How threads are ranked against others of their core.
enum class Priority { idle, nice, normal };

// What each thread does: the kernel on `footprint` bytes, at `rate` B/s of traffic. 0: nothing.
struct Setting {
  std::uint64_t footprint = 0;
  double rate = 0;
};

// What the threads did until `ns` (CLOCK_MONOTONIC), together: bytes moved, and ns in which they were ready to run and
// another thread had their core (-1: unknown).
struct Done {
  std::int64_t ns = 0;
  std::uint64_t bytes = 0;
  std::int64_t waited_ns = 0;
};

class Workers {
 public:
  // `most`: bytes of the largest footprint. They stop `seconds` after they were made. Throws std::runtime_error where a core
  // does not exist or memory is missing.
  Workers(const std::vector<int>& cores, std::uint64_t most, double seconds, Priority priority);
  ~Workers();

  // Returns once all threads have the new setting, and their arrays are in the caches that hold them.
  void set(Setting setting);
  Done done() const;
  // Whether the time has passed.
  bool over() const;
  // What the kernel of the operating system accepted.
  std::string priority() const;

 private:
  struct Thread;
  void loop(Thread& thread);
  void follow(Thread& thread, Setting setting);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Setting setting_;
  std::uint64_t generation_ = 0;  // of the setting
  std::size_t following_ = 0;     // threads that have it
  std::atomic<std::uint64_t> wanted_{0};
  std::atomic<bool> quit_{false};
  std::int64_t end_ns_;
  Priority priority_;
  std::string accepted_;
  std::exception_ptr error_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace elbowroom::load

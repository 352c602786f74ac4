// Which codelets are memory-bound: those that are marked, and those whose tasks take more processor time while messages move.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace elbowroom::guard {

enum class Bound : std::uint8_t { kUnknown, kCompute, kMemory };

// Logarithms of durations: their mean does not follow the few that were interrupted.
class LogTimes {
 public:
  void add(double seconds);
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double variance_of_mean() const;

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// A codelet is memory-bound where its tasks lose more than kNoticed beside messages, by an interval of kDeviations.
constexpr double kNoticed = 0.1;
constexpr double kDeviations = 2.5;
constexpr std::uint64_t kFewest = 6;
Bound judge(const LogTimes& alone, const LogTimes& beside);

// Of the calling thread, ns. Where MPI's work has the core for a while, tasks that compute wait for it: that is not the memory.
inline std::uint64_t processor_time_now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// Tasks of one codelet on data of one size class (powers of two).
class Codelet {
 public:
  Codelet(std::string name, std::uint64_t bytes, Bound marked) : name_(std::move(name)), bytes_(bytes), bound_(marked) {
    marked_ = marked != Bound::kUnknown;
  }
  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }
  bool marked() const { return marked_; }
  Bound bound() const { return bound_.load(std::memory_order_relaxed); }
  // Whether the next task of it is to be timed: each until it is known, then few.
  bool wanted() { return bound() == Bound::kUnknown || asked_.fetch_add(1, std::memory_order_relaxed) % kFew == 0; }
  void add(double seconds, bool beside);
  // Both, as they are now.
  std::tuple<LogTimes, LogTimes> times() const;

 private:
  static constexpr std::uint32_t kFew = 16;
  std::string name_;
  std::uint64_t bytes_;
  bool marked_;
  std::atomic<Bound> bound_;
  std::atomic<std::uint32_t> asked_ = 0;
  mutable std::mutex mutex_;
  LogTimes alone_;
  LogTimes beside_;
};

// All that ran in this process.
class Codelets {
 public:
  // Comma-separated patterns of the shell: names of codelets that are marked.
  Codelets(const std::string& memory, const std::string& compute);

  // By the address of the codelet, whose name is `name`.
  Codelet& find(const void* codelet, const char* name, std::uint64_t bytes);
  std::vector<const Codelet*> all() const;
  // Patterns that no codelet matched.
  std::vector<std::string> unused_marks() const;

 private:
  struct Mark {
    std::string pattern;
    Bound bound;
    bool used = false;
  };
  using Key = std::tuple<const void*, const char*, int>;

  Bound mark_of(const char* name);

  // An address may be that of one before.
  std::uint64_t number_;
  mutable std::mutex mutex_;
  std::vector<Mark> marks_;
  std::map<Key, std::unique_ptr<Codelet>> codelets_;
};

}  // namespace elbowroom::guard

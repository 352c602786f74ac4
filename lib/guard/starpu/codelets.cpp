#include "guard/starpu/codelets.hpp"

#include <fnmatch.h>

#include <bit>
#include <cmath>
#include <sstream>

namespace elbowroom::guard {

void LogTimes::add(double seconds) {
  const double value = std::log(seconds);
  const double before = value - mean_;
  ++count_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

double LogTimes::variance_of_mean() const {
  return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1) / static_cast<double>(count_);
}

Bound judge(const LogTimes& alone, const LogTimes& beside) {
  if (alone.count() < kFewest || beside.count() < kFewest) {
    return Bound::kUnknown;
  }
  const double loss = beside.mean() - alone.mean();
  const double margin = kDeviations * std::sqrt(alone.variance_of_mean() + beside.variance_of_mean());
  const double noticed = std::log1p(kNoticed);
  if (loss - margin > noticed) {
    return Bound::kMemory;
  }
  return loss + margin < noticed ? Bound::kCompute : Bound::kUnknown;
}

void Codelet::add(double seconds, bool beside) {
  if (!(seconds > 0)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  (beside ? beside_ : alone_).add(seconds);
  if (marked_) {
    return;
  }
  // What is known stays until it is known otherwise.
  if (const Bound bound = judge(alone_, beside_); bound != Bound::kUnknown) {
    bound_.store(bound, std::memory_order_relaxed);
  }
}

std::tuple<LogTimes, LogTimes> Codelet::times() const {
  const std::lock_guard lock(mutex_);
  return {alone_, beside_};
}

namespace {
std::atomic<std::uint64_t> made = 0;
}

Codelets::Codelets(const std::string& memory, const std::string& compute) : number_(++made) {
  for (const auto& [list, bound] : {std::pair(memory, Bound::kMemory), std::pair(compute, Bound::kCompute)}) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
      if (!word.empty()) {
        marks_.push_back({word, bound});
      }
    }
  }
}

Bound Codelets::mark_of(const char* name) {
  Bound bound = Bound::kUnknown;
  for (Mark& mark : marks_) {
    if (fnmatch(mark.pattern.c_str(), name, 0) == 0) {
      mark.used = true;
      bound = bound == Bound::kUnknown ? mark.bound : bound;
    }
  }
  return bound;
}

Codelet& Codelets::find(const void* codelet, const char* name, std::uint64_t bytes) {
  const Key key(codelet, name, std::bit_width(bytes));
  // Tasks of one kind often follow each other.
  thread_local std::uint64_t last_of = 0;
  thread_local Key last_key;
  thread_local Codelet* last = nullptr;
  if (last_of == number_ && last_key == key) {
    return *last;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Codelet>& found = codelets_[key];
  if (!found) {
    found = std::make_unique<Codelet>(name, bytes, mark_of(name));
  }
  last_of = number_;
  last_key = key;
  last = found.get();
  return *found;
}

std::vector<const Codelet*> Codelets::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Codelet*> result;
  for (const auto& [key, codelet] : codelets_) {
    result.push_back(codelet.get());
  }
  return result;
}

std::vector<std::string> Codelets::unused_marks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  for (const Mark& mark : marks_) {
    if (!mark.used) {
      result.push_back(mark.pattern);
    }
  }
  return result;
}

}  // namespace elbowroom::guard

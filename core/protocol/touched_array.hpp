// An array that no message is in, and accesses to it whose results are checked (docs/design/method.md, rule 10).
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/machine.hpp"

namespace elbowroom {

// Used by one thread, which makes it and so touches its pages first.
class TouchedArray {
 public:
  TouchedArray(std::size_t bytes, int node, bool writes);  // throws std::runtime_error, as Arena does

  // Writes or reads the first `bytes`, element by element, each write with another value.
  void touch(std::size_t bytes);
  // False when something was read, or is there now, that had not been written.
  bool holds() const;
  void* data() const { return arena_.data(); }
  std::size_t size() const { return arena_.size(); }
  int node() const { return arena_.node(); }
  PageReport verify() const { return arena_.verify(bytes_); }

 private:
  std::size_t bytes_;  // as asked for; an arena has whole pages
  bool writes_;
  Arena arena_;
  std::size_t touched_;      // by the last touch
  std::uint64_t value_ = 1;  // that it wrote, or had to read
  bool read_right_ = true;
};

}  // namespace elbowroom

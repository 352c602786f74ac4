// When the next chunk of work is due, so that a load moves a given number of bytes per second.
#pragma once

#include <cstdint>

namespace elbowroom::load {

class Pace {
 public:
  // Time that a load which was held up makes good by working faster; what is beyond is dropped, so that no burst follows.
  static constexpr std::int64_t kDebtNs = 200'000;

  // `rate` in B/s; infinity: as fast as possible.
  explicit Pace(double rate, std::int64_t start_ns);

  // When the next chunk may begin, at `now_ns` at the latest.
  std::int64_t due_ns(std::int64_t now_ns);
  // A chunk of so many bytes has begun.
  void moved(std::uint64_t bytes);

 private:
  double ns_per_byte_;
  double next_ns_;
};

}  // namespace elbowroom::load

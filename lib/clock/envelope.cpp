#include "envelope.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace elbowroom::clock {
namespace {

constexpr int kPatience = 200;
constexpr int kWarmUp = 8;            // exchanges that do not count
constexpr int kMostExchanges = 1000;  // exchanges of one side
constexpr int kRestarts = 5;          // of a comparison in which a clock was stepped
constexpr std::int64_t kShare = 20;   // a narrowing by less than one such part of the width is none

std::int64_t drifted(double drift, std::int64_t passed) {
  return static_cast<std::int64_t>(std::ceil(drift * static_cast<double>(std::abs(passed))));
}

std::int64_t middle_of(const Exchange& exchange) { return exchange.start + (exchange.end - exchange.start) / 2; }

std::int64_t middle_of_all(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Offset operator+(const Offset& first, const Offset& second) {
  return {first.offset + second.offset, first.low + second.low, first.high + second.high};
}

bool Envelope::add(const Exchange& exchange) {
  const std::int64_t low = exchange.start - exchange.middle;
  const std::int64_t high = exchange.end - exchange.middle;
  if (high < low) {
    return false;
  }
  const std::int64_t round_trip = high - low;
  if (kept_.empty()) {
    low_ = low;
    high_ = high;
    quickest_ = round_trip;
  } else {
    const std::int64_t more = drifted(drift_, std::max<std::int64_t>(exchange.end - last_end_, 0));
    const std::int64_t lower = std::max(low_ - more, low);
    const std::int64_t upper = std::min(high_ + more, high);
    if (upper < lower) {
      return false;
    }
    low_ = lower;
    high_ = upper;
    quickest_ = std::min(quickest_, round_trip);
  }
  last_end_ = exchange.end;
  kept_.push_back(exchange);
  const std::int64_t width = high_ - low_;
  if (exchanges() == 1 || width_ - width > width_ / kShare) {
    narrowed_ = exchanges();
    width_ = width;
  }
  return true;
}

std::optional<Offset> Envelope::offset() const {
  const auto timed = intersection();
  return timed ? std::optional(Offset{std::clamp(timed->offset.offset, low_, high_), low_, high_}) : std::nullopt;
}

std::optional<Compared> Envelope::intersection() const {
  if (kept_.empty()) {
    return std::nullopt;
  }
  std::vector<Exchange> quick = kept_;
  const auto half = static_cast<std::ptrdiff_t>((quick.size() + 1) / 2);
  std::nth_element(quick.begin(), quick.begin() + half - 1, quick.end(),
                   [](const Exchange& a, const Exchange& b) { return a.end - a.start < b.end - b.start; });
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> moments;
  for (auto exchange = quick.begin(); exchange != quick.begin() + half; ++exchange) {
    moments.push_back(middle_of(*exchange));
    offsets.push_back(moments.back() - exchange->middle);
  }
  const std::int64_t at = middle_of_all(moments);
  const std::int64_t more = drifted(drift_, last_end_ - at);
  return Compared{at, {std::clamp(middle_of_all(offsets), low_ - more, high_ + more), low_ - more, high_ + more}};
}

bool Envelope::settled() const { return exchanges() - narrowed_ >= std::max(kPatience, exchanges() / 8); }

std::optional<Compared> compared(const std::function<Exchange()>& once) {
  for (int i = 0; i < kWarmUp; ++i) {
    once();
  }
  Envelope envelope(kDrift);
  int restarts = 0;
  for (int tried = 0; tried < kMostExchanges && !envelope.settled(); ++tried) {
    const Exchange exchange = once();
    if (!envelope.add(exchange)) {
      if (++restarts > kRestarts) {
        return std::nullopt;
      }
      envelope = Envelope(kDrift);
      envelope.add(exchange);
    }
  }
  return envelope.intersection();
}

Compared both(const Compared& first, const Compared& second) {
  const Offset turned{-second.offset.offset, -second.offset.high, -second.offset.low};
  const std::int64_t later = second.at + turned.offset;
  const std::int64_t at = first.at + (later - first.at) / 2;
  const std::int64_t more = drifted(kDrift, later - at);
  const std::int64_t low = std::max(first.offset.low, turned.low) - more;
  const std::int64_t high = std::min(first.offset.high, turned.high) + more;
  if (high < low) {
    return {later, turned};
  }
  const std::int64_t middle = first.offset.offset + (turned.offset - first.offset.offset) / 2;
  return {at, {std::clamp(middle, low, high), low, high}};
}

}  // namespace elbowroom::clock

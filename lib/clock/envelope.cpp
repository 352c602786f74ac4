#include "envelope.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom::clock {
namespace {

constexpr int kPatience = 100;
constexpr std::int64_t kShare = 20;  // a narrowing by less than one such part of the width is none

}  // namespace

Offset operator+(const Offset& first, const Offset& second) {
  return {first.offset + second.offset, first.low + second.low, first.high + second.high};
}

void Envelope::widen(std::int64_t now) {
  const auto more =
      static_cast<std::int64_t>(std::ceil(drift_ * static_cast<double>(std::max<std::int64_t>(now - seen_, 0))));
  low_ -= more;
  high_ += more;
  seen_ = now;
}

bool Envelope::add(const Exchange& exchange) {
  const std::int64_t low = exchange.start - exchange.middle;
  const std::int64_t high = exchange.end - exchange.middle;
  if (high < low) {
    return false;
  }
  const std::int64_t round_trip = high - low;
  if (exchanges_ == 0) {
    low_ = low;
    high_ = high;
    seen_ = exchange.end;
  } else {
    Envelope kept = *this;
    widen(exchange.end);
    low_ = std::max(low_, low);
    high_ = std::min(high_, high);
    if (high_ < low_) {
      *this = kept;
      return false;
    }
  }
  if (exchanges_ == 0 || round_trip < quickest_) {
    quickest_ = round_trip;
    middle_ = low + round_trip / 2;
  }
  ++exchanges_;
  const std::int64_t width = high_ - low_;
  if (exchanges_ == 1 || width_ - width > width_ / kShare) {
    narrowed_ = exchanges_;
    width_ = width;
  }
  return true;
}

std::optional<Offset> Envelope::offset() const {
  if (exchanges_ == 0) {
    return std::nullopt;
  }
  return Offset{std::clamp(middle_, low_, high_), low_, high_};
}

bool Envelope::settled() const { return exchanges_ - narrowed_ >= std::max(kPatience, exchanges_ / 8); }

}  // namespace elbowroom::clock

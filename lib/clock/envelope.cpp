#include "envelope.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace elbowroom::clock {
namespace {

constexpr int kPatience = 200;
constexpr int kWarmUp = 8;            // exchanges that do not count
constexpr int kMostExchanges = 1000;  // exchanges of one side
constexpr int kRestarts = 5;          // of a comparison in which a clock was stepped
constexpr std::size_t kPiece = 32;    // exchanges that bound the offset by themselves; less where there are few:
constexpr std::size_t kLeast = 8;     // the last ones before a jump is noticed may come after it
constexpr std::size_t kPieces = 4;
constexpr std::int64_t kShare = 20;  // a narrowing by less than one such part of the width is none

std::int64_t drifted(double drift, std::int64_t passed) {
  return static_cast<std::int64_t>(std::ceil(drift * static_cast<double>(std::abs(passed))));
}

std::int64_t middle_of(const Exchange& exchange) { return exchange.start + (exchange.end - exchange.start) / 2; }

// What exchanges leave possible at the moment `at` of the asker's clock.
struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  void narrow(const Exchange& exchange, std::int64_t at, double drift) {
    const std::int64_t more = drifted(drift, std::max(std::abs(at - exchange.start), std::abs(at - exchange.end)));
    low = std::max(low, exchange.start - exchange.middle - more);
    high = std::min(high, exchange.end - exchange.middle + more);
  }
};

// Bounds that cover those of all pieces of the exchanges.
Bounds bounds_of_pieces(const std::vector<Exchange>& exchanges, std::int64_t at, double drift) {
  const std::size_t pieces =
      std::max({exchanges.size() / kPiece, std::min(exchanges.size() / kLeast, kPieces), std::size_t{1}});
  Bounds all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    Bounds bounds;
    for (std::size_t i = exchanges.size() * piece / pieces; i < exchanges.size() * (piece + 1) / pieces; ++i) {
      bounds.narrow(exchanges[i], at, drift);
    }
    all = {std::min(all.low, bounds.low), std::max(all.high, bounds.high)};
  }
  return all;
}

// `known` with bounds that cover those of `other`, too, as they are at the moment of `known`.
Compared covering(Compared known, const Compared& other) {
  const std::int64_t more = drifted(kDrift, known.at - other.at);
  known.offset.low = std::min(known.offset.low, other.offset.low - more);
  known.offset.high = std::max(known.offset.high, other.offset.high + more);
  known.offset.jumped = known.offset.jumped || other.offset.jumped;
  return known;
}

std::int64_t middle_of_all(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Offset operator+(const Offset& first, const Offset& second) {
  return {first.offset + second.offset, first.low + second.low, first.high + second.high,
          first.jumped || second.jumped};
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
  const auto known = steady();
  return known ? std::optional(Offset{std::clamp(known->offset.offset, low_, high_), low_, high_}) : std::nullopt;
}

std::optional<Compared> Envelope::steady() const {
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
  const Bounds bounds = bounds_of_pieces(kept_, at, drift_);
  return Compared{at, {std::clamp(middle_of_all(offsets), bounds.low, bounds.high), bounds.low, bounds.high}};
}

bool Envelope::settled() const { return exchanges() - narrowed_ >= std::max(kPatience, exchanges() / 8); }

std::optional<Compared> compared(const std::function<Exchange()>& once) {
  for (int i = 0; i < kWarmUp; ++i) {
    once();
  }
  std::vector<Envelope> steady(1, Envelope(kDrift));  // between jumps
  for (int tried = 0; tried < kMostExchanges || steady.back().exchanges() < kPatience; ++tried) {
    if (steady.back().settled()) {
      break;
    }
    const Exchange exchange = once();
    if (!steady.back().add(exchange)) {
      if (steady.size() > kRestarts) {
        return std::nullopt;
      }
      steady.emplace_back(kDrift);
      steady.back().add(exchange);
    }
  }
  Compared result = steady.back().steady().value();
  result.offset.jumped = steady.size() > 1;
  for (const Envelope& before : steady) {
    if (const auto other = before.steady()) {
      result = covering(result, *other);
    }
  }
  return result;
}

Compared both(const Compared& first, const Compared& second) {
  const Offset turned{-second.offset.offset, -second.offset.high, -second.offset.low, second.offset.jumped};
  const Compared later{second.at + turned.offset, turned};
  const std::int64_t passed = drifted(kDrift, later.at - first.at);
  if (turned.low - passed > first.offset.high || turned.high + passed < first.offset.low) {
    Compared result = covering(later, first);
    result.offset.jumped = true;
    return result;
  }
  const std::int64_t middle = first.offset.offset + (turned.offset - first.offset.offset) / 2;
  const std::int64_t at = first.at + (later.at - first.at) / 2;
  return covering(covering({at, {middle, middle, middle}}, first), later);
}

}  // namespace elbowroom::clock

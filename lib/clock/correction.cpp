#include "correction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace elbowroom::clock {
namespace {

__extension__ using Wide = __int128;

constexpr double kWandering = 1e-6;  // how far the rate of two clocks moves between comparisons, where nothing tells
constexpr double kStrictness = 8;    // medians

std::int64_t half_width(const SyncPoint& point) {
  return std::max(point.offset.high - point.offset.offset, point.offset.offset - point.offset.low);
}

// ns, rounded up; points that contradict each other may ask for any number, of which sums are still whole numbers so.
constexpr double kMost = 0x1p60;
std::int64_t in_ns(double value) { return static_cast<std::int64_t>(std::ceil(std::clamp(value, -kMost, kMost))); }

// value * part / whole, rounded to nearest; no product of times overflows.
std::int64_t share(std::int64_t value, std::int64_t part, std::int64_t whole) {
  const Wide product = static_cast<Wide>(value) * part;
  const Wide half = whole / 2;
  const Wide most = static_cast<Wide>(kMost);
  return static_cast<std::int64_t>(std::clamp((product >= 0 ? product + half : product - half) / whole, -most, most));
}

std::int64_t on_line(const SyncPoint& left, const SyncPoint& right, std::int64_t local) {
  return left.offset.offset +
         share(right.offset.offset - left.offset.offset, local - left.local, right.local - left.local);
}

// How far a point's offset is from the line through two others; beyond them the line goes on.
std::int64_t distance(const SyncPoint& point, const SyncPoint& left, const SyncPoint& right) {
  return std::abs(point.offset.offset - on_line(left, right, point.local));
}

// What the bounds of three points explain of that distance: at the ends of a line errors are larger than those of its
// points.
std::int64_t explained(const SyncPoint& point, const SyncPoint& left, const SyncPoint& right) {
  const double span = static_cast<double>(right.local - left.local);
  const double from_left = std::abs(static_cast<double>(point.local - left.local)) / span;
  const double from_right = std::abs(static_cast<double>(right.local - point.local)) / span;
  const double ends =
      from_right * static_cast<double>(half_width(left)) + from_left * static_cast<double>(half_width(right));
  return half_width(point) + in_ns(ends);
}

template <typename Number>
Number median(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Pairs of points whose lines tell of point `i`, no end, of `count` (four or more): both neighbours, two before, two after.
std::vector<std::pair<std::size_t, std::size_t>> witnesses(std::size_t i, std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> result = {{i - 1, i + 1}};
  if (i >= 2) {
    result.emplace_back(i - 2, i - 1);
  }
  if (i + 2 < count) {
    result.emplace_back(i + 1, i + 2);
  }
  return result;
}

// How much further each point is from all of its lines than is explained, ns; 0 where one of them explains it, and at the
// ends, which may as well be right after a jump: the stretch there is taken for one.
std::vector<double> contradictions(const std::vector<SyncPoint>& points, double strictness) {
  const std::size_t count = points.size();
  std::vector<std::int64_t> far;
  for (std::size_t i = 1; i + 1 < count; ++i) {
    far.push_back(distance(points[i], points[i - 1], points[i + 1]));
  }
  const double wandering = strictness * static_cast<double>(median(far));
  std::vector<double> result(count, 0);
  for (std::size_t i = 1; i + 1 < count; ++i) {
    double least = std::numeric_limits<double>::max();
    for (const auto& [left, right] : witnesses(i, count)) {
      const auto bounds = static_cast<double>(explained(points[i], points[left], points[right]));
      const double beyond =
          static_cast<double>(distance(points[i], points[left], points[right])) - std::max(wandering, bounds / 4);
      least = std::min(least, beyond);
    }
    result[i] = std::max(least, 0.0);
  }
  return result;
}

// Whether point `i` is the first of the worst around it: bad points spoil their neighbours' lines.
bool worst_around(const std::vector<double>& wrong, std::size_t i) {
  for (std::size_t j = i < 2 ? 0 : i - 2; j < std::min(wrong.size(), i + 3); ++j) {
    if (wrong[j] > wrong[i] || (wrong[j] == wrong[i] && j < i)) {
      return false;
    }
  }
  return wrong[i] > 0;
}

}  // namespace

std::vector<SyncPoint> without_outliers(std::vector<SyncPoint> points, double strictness) {
  constexpr std::size_t kFewest = 4;  // of three points none can be told from the others
  bool result = true;
  while (result && points.size() >= kFewest) {
    const std::vector<double> wrong = contradictions(points, strictness);
    std::vector<SyncPoint> left;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!worst_around(wrong, i)) {
        left.push_back(points[i]);
      }
    }
    result = left.size() < points.size();
    points = std::move(left);
  }
  return points;
}

Correction::Correction() : wander_(kWandering), rate_(kDrift) { flags_.none = true; }

Correction::Correction(std::vector<SyncPoint> points) : Correction() {
  std::stable_sort(points.begin(), points.end(),
                   [](const SyncPoint& a, const SyncPoint& b) { return a.local < b.local; });
  const auto again = std::unique(points.begin(), points.end(),
                                 [](const SyncPoint& a, const SyncPoint& b) { return a.local == b.local; });
  flags_.backwards = again != points.end();
  points.erase(again, points.end());
  const std::vector<SyncPoint> given = points;
  points = without_outliers(std::move(points), kStrictness);
  flags_.rejected = static_cast<int>(given.size() - points.size());
  for (const SyncPoint& point : points) {
    // Both clocks must go on from one point to the next.
    if (!points_.empty() &&
        (point.local <= points_.back().local ||
         point.local + point.offset.offset <= points_.back().local + points_.back().offset.offset)) {
      flags_.backwards = true;
      continue;
    }
    points_.push_back(point);
  }
  flags_.none = points_.empty();
  flags_.single = points_.size() == 1;
  if (points_.size() >= 2) {
    find_steps();
    find_bends();
    span_left_out(given);
  }
  find_unlocated(given);
  find_knots();
}

double Correction::span(std::size_t i) const { return static_cast<double>(points_[i + 1].local - points_[i].local); }

// A stretch has a jump where its rate is not among those of the two stretches before and the two after (at the ends the
// nearest four), or is no rate that a clock has. Its bar spans what the rate in the middle of those does not explain.
void Correction::find_steps() {
  constexpr std::size_t kAround = 5;  // stretches
  const std::size_t count = points_.size() - 1;
  between_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    between_[i].slope = static_cast<double>(points_[i + 1].offset.offset - points_[i].offset.offset) / span(i);
  }
  std::vector<std::int64_t> beyond(count, 0);
  std::vector<std::int64_t> jump(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> around;
    const std::size_t first = count < kAround ? 0 : std::min(i < 2 ? 0 : i - 2, count - kAround);
    for (std::size_t j = first; j < std::min(count, first + kAround); ++j) {
      if (j != i) {
        around.push_back(between_[j].slope);
      }
    }
    std::sort(around.begin(), around.end());
    const std::size_t outer = around.size() >= 3 ? 1 : 0;  // one of them may have a jump itself
    const double slope = between_[i].slope;
    const double low = around.empty() ? -2 * kDrift : std::clamp(around[outer], -2 * kDrift, 2 * kDrift);
    const double high =
        around.empty() ? 2 * kDrift : std::clamp(around[around.size() - 1 - outer], -2 * kDrift, 2 * kDrift);
    beyond[i] = in_ns(std::max({low - slope, slope - high, 0.0}) * span(i));
    around.push_back(slope);
    const double usual = std::clamp(median(around), -kDrift, kDrift);
    jump[i] = std::max(beyond[i], in_ns(std::abs(slope - usual) * span(i)));
  }
  const double usual = kStrictness * static_cast<double>(median(beyond));
  for (std::size_t i = 0; i < count; ++i) {
    const auto bounds = static_cast<double>(half_width(points_[i]) + half_width(points_[i + 1]));
    const double impossible = std::max(std::abs(between_[i].slope) - 2 * kDrift, 0.0) * span(i);
    between_[i].stepped =
        impossible > bounds / 4 || (count > 1 && static_cast<double>(beyond[i]) > std::max(usual, bounds / 4));
    // A jump too small to be told from the points' errors leaves the line by as much as any other.
    between_[i].bend = beyond[i];
    if (between_[i].stepped) {
      between_[i].bend = between_[i].jump = jump[i];
      ++flags_.steps;
    } else {
      steady_ = i + 1;
    }
  }
}

// A clock whose rate stays between those of the neighbouring stretches, and a little beyond, leaves the line no further
// than one that runs at the lowest of them first and at the highest then.
void Correction::find_bends() {
  std::vector<double> turns;
  double before = std::nan("");  // none
  rate_ = 0;
  for (const Stretch& stretch : between_) {
    if (stretch.stepped) {
      before = std::nan("");
      continue;
    }
    rate_ = std::max(rate_, std::abs(stretch.slope));
    if (!std::isnan(before)) {
      turns.push_back(std::abs(stretch.slope - before));
    }
    before = stretch.slope;
  }
  constexpr std::size_t kTelling = 3;  // changes of the rate
  wander_ = turns.size() >= kTelling ? 2 * median(turns) : kWandering;
  rate_ = (steady_ == 0 ? kDrift : rate_) + wander_;
  for (std::size_t i = 0; i < between_.size(); ++i) {
    if (between_[i].stepped) {
      between_[i].bend += in_ns(span(i) * wander_);
      continue;
    }
    const double slope = between_[i].slope;
    const bool has_left = i > 0 && !between_[i - 1].stepped;
    const bool has_right = i + 1 < between_.size() && !between_[i + 1].stepped;
    const double right = has_right ? between_[i + 1].slope : has_left ? 2 * slope - between_[i - 1].slope : slope;
    const double left = has_left ? between_[i - 1].slope : 2 * slope - right;
    const double low = std::min({left, slope, right}) - wander_;
    const double high = std::max({left, slope, right}) + wander_;
    if (high > low) {
      between_[i].bend += in_ns(span(i) * (high - slope) * (slope - low) / (high - low));
    }
  }
}

void Correction::span_left_out(const std::vector<SyncPoint>& given) {
  for (const SyncPoint& point : given) {
    const auto right = std::upper_bound(points_.begin() + 1, points_.end() - 1, point.local,
                                        [](std::int64_t time, const SyncPoint& kept) { return time < kept.local; });
    const SyncPoint& left = *(right - 1);
    if (left.local == point.local || right->local == point.local) {
      continue;
    }
    Stretch& around = between_[static_cast<std::size_t>(right - points_.begin()) - 1];
    const std::int64_t away = distance(point, left, *right) + half_width(point);
    around.bend = std::max(around.bend, away);
    around.jump = std::max(around.jump, away);
  }
}

// Two jumps between two points that cancel each other leave no trace. A clock that was seen to jump `seen` times in `whole`
// ns, at random, jumps twice within a stretch with the probability (seen * stretch / whole)^2 / 2. Where that is to be
// expected in one record of a hundred, all bars span the largest jump that was seen.
void Correction::find_unlocated(const std::vector<SyncPoint>& given) {
  constexpr double kRare = 0.01;
  std::int64_t largest = 0;
  for (const SyncPoint& point : given) {
    flags_.jumped += point.offset.jumped ? 1 : 0;
    largest = std::max(largest, point.offset.jumped ? point.offset.high - point.offset.low : 0);
  }
  int seen = flags_.jumped;
  for (const Stretch& stretch : between_) {
    seen += stretch.jump > 0 ? 1 : 0;
    largest = std::max(largest, stretch.jump);
  }
  const double whole = points_.empty() ? 0 : static_cast<double>(points_.back().local - points_.front().local);
  double expected = between_.empty() ? seen : 0;
  for (std::size_t i = 0; i < between_.size(); ++i) {
    expected += std::pow(seen * span(i) / whole, 2) / 2;
  }
  flags_.unlocated = expected > kRare ? largest : 0;
}

void Correction::find_knots() {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    knots_.push_back(points_[i]);
    if (i < between_.size() && between_[i].stepped) {
      add_turn(i);
    }
  }
}

// A straight line would be wrong for the whole stretch, two lines only between the jump and the middle.
void Correction::add_turn(std::size_t i) {
  const bool has_left = i > 0 && !between_[i - 1].stepped;
  const bool has_right = i + 1 < between_.size() && !between_[i + 1].stepped;
  if (!has_left && !has_right) {
    return;
  }
  const double before = has_left ? between_[i - 1].slope : between_[i + 1].slope;
  const double after = has_right ? between_[i + 1].slope : before;
  if (std::abs(before) > 2 * kDrift || std::abs(after) > 2 * kDrift) {
    return;  // no clock's rates
  }
  const SyncPoint& from = points_[i];
  const SyncPoint& to = points_[i + 1];
  const auto left = [&](std::int64_t local) {
    return from.offset.offset + std::llround(before * static_cast<double>(local - from.local));
  };
  const auto right = [&](std::int64_t local) {
    return to.offset.offset - std::llround(after * static_cast<double>(to.local - local));
  };
  const std::int64_t middle = from.local + (to.local - from.local) / 2;
  const std::int64_t jump = std::abs(right(middle) - left(middle));
  if (jump == 0 || jump >= (to.local - from.local) / 4) {
    return;
  }
  between_[i].bend = std::max(between_[i].bend, jump + in_ns(span(i) * wander_)) + half_width(from) + half_width(to);
  // Twice the jump wide, so that times rise at half the clock's rate or faster.
  for (const auto& [local, offset] :
       {std::pair{middle - jump, left(middle - jump)}, {middle + jump, right(middle + jump)}}) {
    knots_.push_back({local, {offset, offset - between_[i].bend, offset + between_[i].bend}});
  }
}

std::vector<Segment> Correction::segments() const {
  std::vector<Segment> result;
  for (std::size_t i = 0; i < between_.size(); ++i) {
    result.push_back({points_[i].local, points_[i + 1].local, points_[i].offset.offset, between_[i].slope * 1e9,
                      inside(i + 1, points_[i].local).error, between_[i].stepped});
  }
  return result;
}

std::int64_t Correction::gained(std::int64_t passed) const {
  if (steady_ == 0) {
    return 0;
  }
  const SyncPoint& from = points_[steady_ - 1];
  const SyncPoint& to = points_[steady_];
  return share(to.offset.offset - from.offset.offset, passed, to.local - from.local);
}

Corrected Correction::outside(const SyncPoint& nearest, std::int64_t local) const {
  const double far = std::abs(static_cast<double>(local - nearest.local));
  std::int64_t error = half_width(nearest) + in_ns(rate_ * far) + flags_.unlocated;
  if (!between_.empty()) {
    // A jump to an end may be a point that was told wrong.
    const Stretch& last = &nearest == &points_.front() ? between_.front() : between_.back();
    error += last.stepped ? last.bend : 0;
  }
  return {local + nearest.offset.offset, error};
}

Corrected Correction::inside(std::size_t right, std::int64_t local) const {
  const SyncPoint& from = points_[right - 1];
  const SyncPoint& to = points_[right];
  const std::int64_t error = std::max(half_width(from), half_width(to)) + between_[right - 1].bend + flags_.unlocated;
  if (!between_[right - 1].stepped) {
    return {local + on_line(from, to, local), error};
  }
  const auto after = std::upper_bound(knots_.begin(), knots_.end(), local,
                                      [](std::int64_t time, const SyncPoint& knot) { return time < knot.local; });
  return {local + on_line(*(after - 1), *after, local), error};
}

Corrected Correction::ahead(std::int64_t local) const {
  if (steady_ == 0 || local <= points_.back().local) {
    return at(local);
  }
  const SyncPoint& last = points_.back();
  const double far = static_cast<double>(local - last.local);
  const double open = static_cast<double>(half_width(points_[steady_ - 1]) + half_width(points_[steady_]));
  const double rate = open / span(steady_ - 1) + std::max(kWandering, wander_);
  return {local + last.offset.offset + gained(local - last.local),
          half_width(last) + in_ns(rate * far) + flags_.unlocated};
}

Offset later(const SyncPoint& known, const Correction& correction, std::int64_t local) {
  const std::int64_t passed = local - known.local;
  const auto drifted = in_ns(kDrift * std::abs(static_cast<double>(passed)));
  return known.offset + Offset{std::clamp(correction.gained(passed), -drifted, drifted), -drifted, drifted};
}

Corrected Correction::at(std::int64_t local) const {
  if (points_.empty()) {
    return {local, 0};
  }
  if (local <= points_.front().local) {
    return outside(points_.front(), local);
  }
  if (local >= points_.back().local) {
    return outside(points_.back(), local);
  }
  const auto right = std::upper_bound(points_.begin(), points_.end(), local,
                                      [](std::int64_t time, const SyncPoint& point) { return time < point.local; });
  return inside(static_cast<std::size_t>(right - points_.begin()), local);
}

}  // namespace elbowroom::clock

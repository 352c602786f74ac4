#include "correction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace elbowroom::clock {
namespace {

__extension__ using Wide = __int128;

constexpr double kWandering = 1e-6;  // how far the rate of two clocks moves between comparisons

std::int64_t half_width(const SyncPoint& point) {
  return std::max(point.offset.high - point.offset.offset, point.offset.offset - point.offset.low);
}

// value * part / whole, rounded to nearest; no product of times overflows.
std::int64_t share(std::int64_t value, std::int64_t part, std::int64_t whole) {
  const Wide product = static_cast<Wide>(value) * part;
  const Wide half = whole / 2;
  return static_cast<std::int64_t>((product >= 0 ? product + half : product - half) / whole);
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
  return half_width(point) + static_cast<std::int64_t>(std::ceil(ends));
}

// The two points whose line tells of point `i`: its neighbours, at the ends the nearest two.
std::pair<std::size_t, std::size_t> witnesses(std::size_t i, std::size_t count) {
  if (i == 0) {
    return {1, 2};
  }
  return i + 1 == count ? std::pair{count - 3, count - 2} : std::pair{i - 1, i + 1};
}

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<SyncPoint> without_outliers(std::vector<SyncPoint> points, double strictness) {
  constexpr std::size_t kFewest = 4;  // of three points none can be told from the others
  while (points.size() >= kFewest) {
    std::vector<std::int64_t> far(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [left, right] = witnesses(i, points.size());
      far[i] = distance(points[i], points[left], points[right]);
    }
    const double wandering = strictness * static_cast<double>(median(far));
    std::size_t worst = points.size();
    double most = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [left, right] = witnesses(i, points.size());
      const double beyond = static_cast<double>(far[i] - explained(points[i], points[left], points[right])) - wandering;
      // A bad point spoils its neighbours' lines, too, by half at most: it is the worst itself, unless it is an end.
      const bool end = i == 0 || i + 1 == points.size();
      if (beyond > most * (end ? 2 : 1)) {
        most = beyond;
        worst = i;
      }
    }
    if (worst == points.size()) {
      break;
    }
    points.erase(points.begin() + static_cast<std::ptrdiff_t>(worst));
  }
  return points;
}

Correction::Correction(std::vector<SyncPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const SyncPoint& a, const SyncPoint& b) { return a.local < b.local; });
  const std::size_t given = points.size();
  points = without_outliers(std::move(points));
  flags_.rejected = static_cast<int>(given - points.size());
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
  if (points_.size() < 2) {
    return;
  }
  rate_ = 0;
  for (std::size_t i = 0; i + 1 < points_.size(); ++i) {
    const double step = static_cast<double>(points_[i + 1].offset.offset - points_[i].offset.offset);
    rate_ = std::max(rate_, std::abs(step) / static_cast<double>(points_[i + 1].local - points_[i].local));
  }
  bend_.assign(points_.size() - 1, 0);
  for (std::size_t i = 1; i + 1 < points_.size(); ++i) {
    // A parabola through three points leaves the line between two of them by a quarter of what the middle one is off
    // the line between the others, where they are equally far apart.
    const std::int64_t off = distance(points_[i], points_[i - 1], points_[i + 1]);
    const std::int64_t before = points_[i].local - points_[i - 1].local;
    const std::int64_t after = points_[i + 1].local - points_[i].local;
    bend_[i - 1] = std::max(bend_[i - 1], share(off, before, 4 * after));
    bend_[i] = std::max(bend_[i], share(off, after, 4 * before));
  }
}

Corrected Correction::outside(const SyncPoint& nearest, std::int64_t local) const {
  const double far = std::abs(static_cast<double>(local - nearest.local));
  return {local + nearest.offset.offset, half_width(nearest) + static_cast<std::int64_t>(std::ceil(rate_ * far))};
}

Corrected Correction::inside(std::size_t right, std::int64_t local) const {
  const SyncPoint& from = points_[right - 1];
  const SyncPoint& to = points_[right];
  const std::int64_t error = std::max(half_width(from), half_width(to)) + bend_[right - 1];
  return {local + on_line(from, to, local), error};
}

Corrected Correction::ahead(std::int64_t local) const {
  if (points_.size() < 2 || local <= points_.back().local) {
    return at(local);
  }
  const SyncPoint& before = points_[points_.size() - 2];
  const SyncPoint& last = points_.back();
  const double far = static_cast<double>(local - last.local);
  const double open = static_cast<double>(half_width(before) + half_width(last));
  const double rate = open / static_cast<double>(last.local - before.local) + kWandering;
  return {local + on_line(before, last, local), half_width(last) + static_cast<std::int64_t>(std::ceil(rate * far))};
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

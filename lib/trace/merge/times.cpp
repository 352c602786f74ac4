#include "trace/merge/times.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMostLocal = 1LL << 60;  // ns, 36 years

std::uint64_t stamp_at(const HostClock& clock, std::int64_t local) {
  if (!clock.counter) {
    return static_cast<std::uint64_t>(local);
  }
  // One tick more, since both ways round down.
  const Wide ticks = ((static_cast<Wide>(local - clock.start_ns) << 32) / static_cast<Wide>(clock.scale)) + 1;
  const Wide stamp = ticks + static_cast<Wide>(clock.start_ticks);
  return static_cast<std::uint64_t>(std::clamp<Wide>(stamp, 1, ~0ULL));
}

}  // namespace

RankTimes::RankTimes(const std::vector<LinesSync>& syncs, bool alone) : alone_(alone) {
  std::vector<clock::SyncPoint> usable;
  for (const LinesSync& sync : syncs) {
    if (sync.same_source) {
      usable.push_back(sync.point);
    }
  }
  correction_ = clock::Correction(usable);
  unsynced_ = !alone && correction_.flags().none;
  for (const LinesSync& sync : syncs) {
    const auto& kept = correction_.points();
    const bool used = sync.same_source && std::any_of(kept.begin(), kept.end(), [&](const clock::SyncPoint& point) {
                        return point.local == sync.point.local && point.offset.offset == sync.point.offset.offset;
                      });
    const clock::Offset& offset = sync.point.offset;
    syncs_.push_back({sync.point.local, offset.offset, offset.low, offset.high, used});
  }
}

Stamped RankTimes::at(std::int64_t local) const {
  const auto& points = correction_.points();
  if (points.empty()) {
    return {local + shift_, alone_ ? 0 : -1, alone_ ? std::uint8_t{0} : std::uint8_t{kUnsynced}};
  }
  const clock::Corrected corrected = correction_.at(local);
  const bool outside = local < points.front().local || local > points.back().local;
  return {corrected.time, corrected.error, outside ? std::uint8_t{kExtrapolated} : std::uint8_t{0}};
}

std::vector<MergedSync> RankTimes::turns() const {
  std::vector<MergedSync> result;
  const auto& points = correction_.points();
  for (const clock::SyncPoint& knot : correction_.knots()) {
    const bool given = std::binary_search(points.begin(), points.end(), knot,
                                          [](const auto& a, const auto& b) { return a.local < b.local; });
    if (!given) {
      result.push_back({knot.local, knot.offset.offset, knot.offset.low, knot.offset.high, true});
    }
  }
  return result;
}

StampRange stamps_of(const HostClock& clock, std::int64_t end_ns) {
  const std::int64_t end = end_ns > 0 ? std::min(end_ns, kMostLocal) : kMostLocal;
  StampRange range;
  range.least = clock.counter ? std::max<std::uint64_t>(clock.start_ticks, 1) : 1;
  range.most = std::max(range.least, stamp_at(clock, std::max(end, clock.start_ns)));
  return range;
}

}  // namespace elbowroom::trace

#include "simulation.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <optional>
#include <thread>
#include <utility>

#include "tree.hpp"

namespace elbowroom::clock {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = kSecond;  // of true time: the first comparison
constexpr std::size_t kLate = 32;         // points that rates of late are known from, as in job_clock
constexpr int kErrorsShown = 240;         // of a clock

double between(Chance& chance, double low, double high) { return low + (high - low) * chance.even(); }

// The same for one purpose and number whatever else is asked for: nothing depends on who comes first.
Chance chance_of(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number) {
  Chance first(seed);
  Chance second(first.next() ^ purpose);
  return Chance(second.next() ^ number);
}

enum Purpose : std::uint64_t { for_clocks = 1, for_walks, for_comparisons, for_barriers, for_moments, for_messages };

// Calls work(i) for 0 to count - 1, on all processors.
template <typename Work>
void in_parallel(int count, Work work) {
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, std::max(count, 1));
  std::atomic<int> next = 0;
  const auto worker = [&] {
    for (int i = next++; i < count; i = next++) {
      work(i);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back(worker);
  }
  worker();
  for (std::thread& other : others) {
    other.join();
  }
}

bool flagged(const CorrectionFlags& flags) {
  return flags.none || flags.single || flags.backwards || flags.rejected > 0 || flags.steps > 0 || flags.jumped > 0;
}

class Simulation {
 public:
  explicit Simulation(const Plan& plan) : plan_(plan), link_(link_of(plan.link)) {
    const std::int64_t whole = plan.duration + 2 * kBegin;
    for (int i = 0; i < plan.clocks; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      Chance chance = chance_of(plan.seed, for_clocks, number);
      clocks_.emplace_back(clock_of(plan.clock, whole, chance), whole, chance_of(plan.seed, for_walks, number).next());
    }
    points_.resize(clocks_.size());
    known_.resize(clocks_.size());
    of_late_.resize(clocks_.size());
  }

  Outcome run() {
    outcome_.rounds = rounds(plan_.clocks);
    // As JobClock::synchronise: the first pass only tells at which rates clocks drift.
    std::int64_t until = compare_all(kBegin);
    rates_only_ = std::exchange(points_, Points(clocks_.size()));
    for (std::int64_t at = 0; at <= plan_.duration; at += plan_.every) {
      until = compare_all(std::max(kBegin + at, until));
      begin_ = at == 0 ? until : begin_;
      ++outcome_.comparisons;
    }
    judge_all();
    show();
    return std::move(outcome_);
  }

 private:
  using Points = std::vector<std::vector<SyncPoint>>;  // of each clock

  // What came of one meeting.
  struct Met {
    std::int64_t until = 0;  // true time
    std::int64_t exchanges = 0;
    bool failed = false;
    bool wrong = false;
  };

  // The rounds of one comparison of all clocks, each pair when both are free; when the last is.
  std::int64_t compare_all(std::int64_t begin) {
    std::vector<std::int64_t> free(clocks_.size(), begin);
    known_[0] = {clocks_[0].at(begin), {}};
    points_[0].push_back(known_[0]);
    for (int round = 0; round < outcome_.rounds; ++round) {
      const int known = 1 << round;
      const int pairs = std::min(known, plan_.clocks - known);
      std::vector<Met> met(static_cast<std::size_t>(pairs));
      in_parallel(pairs, [&](int asker) {
        const int answerer = asker + known;
        const std::int64_t from =
            std::max(free[static_cast<std::size_t>(asker)], free[static_cast<std::size_t>(answerer)]);
        met[static_cast<std::size_t>(asker)] = meet(asker, answerer, from);
      });
      for (int asker = 0; asker < pairs; ++asker) {
        const Met& one = met[static_cast<std::size_t>(asker)];
        free[static_cast<std::size_t>(asker)] = one.until;
        free[static_cast<std::size_t>(asker) + static_cast<std::size_t>(known)] = one.until;
        outcome_.exchanges += one.exchanges;
        outcome_.incomparable += one.failed ? 1 : 0;
        outcome_.corrupted += one.wrong ? 1 : 0;
        outcome_.longest = std::max(outcome_.longest, one.until - begin);
      }
    }
    ++passes_;
    return *std::max_element(free.begin(), free.end());
  }

  // As JobClock::ask and answer.
  Met meet(int asker, int answerer, std::int64_t from) {
    const auto here = static_cast<std::size_t>(asker);
    const auto there = static_cast<std::size_t>(answerer);
    Chance chance =
        chance_of(plan_.seed, for_comparisons, there * 1'000'003 + static_cast<std::uint64_t>(passes_) * 1'000'000'007);
    Met met;
    met.until = from;
    const auto result = simulated_comparison(clocks_[here], clocks_[there], link_, chance, met.until, met.exchanges);
    if (!result) {
      met.failed = true;
      return met;
    }
    const Offset own = asker == 0 ? Offset{} : later(known_[here], of_late_[here], result->at);
    known_[there] = {result->at - result->offset.offset, own + result->offset};
    SyncPoint known = known_[there];
    if (passes_ > 0 && chance.even() < plan_.bad) {
      // Told wrong by up to 100 us, and its bounds with it: a process that was moved, a clock read in the wrong place.
      const auto wrong = std::llround(between(chance, -100e3, 100e3));
      known.offset = known.offset + Offset{wrong, wrong, wrong};
      met.wrong = true;
    }
    points_[there].push_back(known);
    const auto first = points_[there].size() > kLate ? points_[there].end() - kLate : points_[there].begin();
    std::vector<SyncPoint> late(first, points_[there].end());
    if (passes_ == 1) {
      late.insert(late.begin(), rates_only_[there].begin(), rates_only_[there].end());
    }
    of_late_[there] = Correction(std::move(late));
    return met;
  }

  using Corrections = std::vector<Correction>;  // of each clock

  Corrections corrections(const std::vector<std::vector<SyncPoint>>& points) const {
    Corrections result(clocks_.size());
    in_parallel(plan_.clocks, [&](int i) {
      const auto number = static_cast<std::size_t>(i);
      result[number] = i == 0 ? Correction() : Correction(points[number]);
    });
    return result;
  }

  // Each clock leaves two plain barriers as messages of their rounds arrive, and takes that for one moment.
  std::vector<std::vector<SyncPoint>> of_barriers() const {
    std::vector<std::vector<SyncPoint>> result(clocks_.size());
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      Chance chance = chance_of(plan_.seed, for_barriers, i);
      for (const std::int64_t begin : {kBegin, kBegin + plan_.duration}) {
        std::int64_t leaves = begin;
        for (int round = 0; round < outcome_.rounds; ++round) {
          leaves += travel(link_, chance, true);
        }
        const std::int64_t local = clocks_[i].at(leaves);
        const std::int64_t first = i == 0 ? local : result[0][result[i].size()].local;
        result[i].push_back({local, {first - local, first - local, first - local}});
      }
    }
    return result;
  }

  void judge_all() {
    corrections_ = corrections(points_);
    for (std::size_t i = 1; i < points_.size(); ++i) {
      outcome_.points += static_cast<std::int64_t>(points_[i].size());
      outcome_.rejected += corrections_[i].flags().rejected;
      outcome_.steps += corrections_[i].flags().steps;
    }
    std::vector<std::vector<SyncPoint>> one(points_.size());
    std::vector<std::vector<SyncPoint>> two(points_.size());
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (!points_[i].empty()) {
        one[i] = {points_[i].front()};
        two[i] = {points_[i].front(), points_[i].back()};
      }
    }
    outcome_.messages = plan_.clocks > 1 ? plan_.messages : 0;
    judge("two plain barriers", corrections(of_barriers()));
    judge("one point", corrections(one));
    judge("two points", corrections(two));
    judge("all points", corrections_);
  }

  // A correction knows nothing of the reference's own clock: it is right.
  Corrected corrected(const Corrections& by, std::size_t clock, std::int64_t truth) const {
    const std::int64_t local = clocks_[clock].at(truth);
    return clock == 0 ? Corrected{local, 0} : by[clock].at(local);
  }

  void judge(const char* name, const Corrections& by) {
    Judged judged;
    judged.name = name;
    const std::int64_t each = std::max<std::int64_t>(plan_.moments / std::max(plan_.clocks - 1, 1), 20);
    std::vector<std::int64_t> errors;
    std::vector<std::int64_t> bounds;
    std::int64_t inside = 0;
    for (std::size_t i = 1; i < clocks_.size(); ++i) {
      Chance chance = chance_of(plan_.seed, for_moments, i);
      for (std::int64_t k = 0; k < each; ++k) {
        const std::int64_t truth = moment(chance);
        const Corrected result = corrected(by, i, truth);
        errors.push_back(std::abs(result.time - clocks_[0].at(truth)));
        bounds.push_back(result.error);
        const bool held = errors.back() <= result.error + 1;  // 1: local times are whole ns
        inside += held ? 1 : 0;
        judged.unflagged += held || flagged(by[i].flags()) ? 0 : 1;
      }
    }
    const auto share = [](std::vector<std::int64_t>& values, double part) {
      if (values.empty()) {
        return std::int64_t{0};
      }
      const auto place = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
      std::nth_element(values.begin(), place, values.end());
      return *place;
    };
    judged.p50 = share(errors, 0.5);
    judged.p95 = share(errors, 0.95);
    judged.most = share(errors, 1);
    judged.bound_p50 = share(bounds, 0.5);
    judged.inside = errors.empty() ? 1 : static_cast<double>(inside) / static_cast<double>(errors.size());
    judged.tachyons = tachyons(by);
    outcome_.methods.push_back(judged);
  }

  // After the first comparison of all clocks.
  std::int64_t moment(Chance& chance) const {
    const std::int64_t whole = std::max(kBegin + plan_.duration - begin_, std::int64_t{1});
    return begin_ + std::llround(chance.even() * static_cast<double>(whole));
  }

  std::int64_t tachyons(const Corrections& by) const {
    Chance chance = chance_of(plan_.seed, for_messages, 0);
    std::int64_t result = 0;
    const auto count = static_cast<std::uint64_t>(plan_.clocks);
    for (std::int64_t k = 0; k < outcome_.messages; ++k) {
      const std::size_t from = chance.next() % count;
      const std::size_t to = (from + 1 + chance.next() % (count - 1)) % count;
      const std::int64_t sent = moment(chance);
      const std::int64_t received = sent + travel(link_, chance, true);
      result += corrected(by, to, received).time < corrected(by, from, sent).time ? 1 : 0;
    }
    return result;
  }

  // Clocks that are spread over the tree.
  void show() {
    const int others = plan_.clocks - 1;
    const int count = std::min(plan_.shown, others);
    for (int k = 0; k < count; ++k) {
      Shown shown;
      shown.clock = count == 1 ? 1 : 1 + static_cast<int>(static_cast<std::int64_t>(k) * (others - 1) / (count - 1));
      const auto number = static_cast<std::size_t>(shown.clock);
      const Correction& correction = corrections_[number];
      for (const SyncPoint& point : points_[number]) {
        const auto used = [&](const SyncPoint& kept) {
          return kept.local == point.local && kept.offset.offset == point.offset.offset;
        };
        shown.points.push_back({point, std::any_of(correction.points().begin(), correction.points().end(), used)});
      }
      shown.segments = correction.segments();
      shown.flags = correction.flags();
      for (int k2 = 0; k2 <= kErrorsShown; ++k2) {
        const std::int64_t truth = begin_ + (kBegin + plan_.duration - begin_) / kErrorsShown * k2;
        const Corrected result = corrected(corrections_, number, truth);
        shown.errors.push_back({clocks_[number].at(truth), result.time - clocks_[0].at(truth), result.error});
      }
      outcome_.shown.push_back(std::move(shown));
    }
  }

  Plan plan_;
  LinkSetup link_;
  std::vector<SimulatedClock> clocks_;
  Points points_;                 // as told
  Points rates_only_;             // of the first pass
  std::vector<SyncPoint> known_;  // of each clock: the last, as it was found
  Corrections of_late_;
  Corrections corrections_;
  int passes_ = 0;          // of all clocks
  std::int64_t begin_ = 0;  // of true time: the end of the first comparison
  Outcome outcome_;
};

}  // namespace

// One in ten minutes on average.
void add_steps(ClockSetup& setup, std::int64_t duration, Chance& chance) {
  double at = chance.exponential(600e9);
  while (at < static_cast<double>(duration)) {
    setup.steps.push_back({std::llround(at), std::llround(between(chance, -100e3, 100e3))});
    at += chance.exponential(600e9);
  }
}

ClockSetup clock_of(ClockKind kind, std::int64_t duration, Chance& chance) {
  ClockSetup setup;
  setup.offset = std::llround(chance.normal() * 1e6 * kSecond);  // started days apart
  if (kind == ClockKind::mixed) {
    kind = static_cast<ClockKind>(chance.next() % static_cast<std::uint64_t>(ClockKind::mixed));
  }
  const bool wide = kind == ClockKind::affine || kind == ClockKind::steps;
  setup.drift_ppm = between(chance, wide ? -100 : -20, wide ? 100 : 20);
  switch (kind) {
    case ClockKind::thermal:
      setup.wave_ppm = between(chance, 0.04, 0.1);
      setup.wave_s = between(chance, 900, 1800);
      setup.wave_phase = between(chance, 0, 2 * std::numbers::pi);
      setup.walk_ppm = 0.001;
      break;
    case ClockKind::walk: setup.walk_ppm = 0.005; break;
    case ClockKind::steps: add_steps(setup, duration, chance); break;
    case ClockKind::slewing: setup.slew_ppm = between(chance, -10, 10); break;
    case ClockKind::affine:
    case ClockKind::mixed: break;
  }
  return setup;
}

LinkSetup link_of(LinkKind kind) {
  LinkSetup link{.latency_ns = 1500, .jitter_ns = 200};
  switch (kind) {
    case LinkKind::symmetric: break;
    case LinkKind::asymmetric: link.asymmetry = 0.2; break;
    case LinkKind::lossy: link.loss = 0.01; break;
    case LinkKind::heavy_tail: link.heavy = true; break;
    case LinkKind::busy: link.preempted = 0.02; break;
  }
  return link;
}

Outcome simulate(const Plan& plan) { return Simulation(plan).run(); }

}  // namespace elbowroom::clock

#include "simulated.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elbowroom::clock {
namespace {

constexpr double kNsPerSecond = 1e9;  // ns
constexpr double kPpm = 1e-6;

}  // namespace

std::uint64_t Chance::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t value = state_;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

double Chance::even() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Chance::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - even()));
  return radius * std::cos(2 * std::numbers::pi * even());
}

double Chance::exponential(double mean) { return -mean * std::log(1 - even()); }

SimulatedClock::SimulatedClock(ClockSetup setup, std::int64_t duration, std::uint64_t seed) : setup_(std::move(setup)) {
  if (setup_.walk_ppm == 0) {
    return;
  }
  Chance chance(seed);
  double rate = 0;
  double gained = 0;
  for (std::int64_t second = 0; second <= duration / static_cast<std::int64_t>(kNsPerSecond) + 1; ++second) {
    rates_.push_back(rate);
    walked_.push_back(gained);
    gained += rate * kPpm * kNsPerSecond;
    rate += setup_.walk_ppm * chance.normal();
  }
}

double SimulatedClock::gained(std::int64_t truth) const {
  const double time = static_cast<double>(truth);
  double sum = setup_.drift_ppm * kPpm * time;
  if (setup_.wave_ppm != 0) {
    const double turn = 2 * std::numbers::pi / (setup_.wave_s * kNsPerSecond);
    sum += setup_.wave_ppm * kPpm / turn * (std::cos(setup_.wave_phase) - std::cos(turn * time + setup_.wave_phase));
  }
  if (setup_.slew_ppm != 0) {
    const double cycle = 2 * setup_.slew_s * kNsPerSecond;
    const double whole = std::floor(time / cycle);
    sum += setup_.slew_ppm * kPpm * (whole * cycle / 2 + std::fmin(time - whole * cycle, cycle / 2));
  }
  if (!walked_.empty()) {
    auto second = static_cast<std::size_t>(std::fmax(time / kNsPerSecond, 0));
    second = std::min(second, walked_.size() - 1);
    sum += walked_[second] + rates_[second] * kPpm * (time - static_cast<double>(second) * kNsPerSecond);
  }
  return sum;
}

std::int64_t SimulatedClock::at(std::int64_t truth) const {
  std::int64_t local = truth + setup_.offset + std::llround(gained(truth));
  for (const Step& step : setup_.steps) {
    local += truth >= step.at ? step.by : 0;
  }
  return local;
}

std::int64_t travel(const LinkSetup& link, Chance& chance, bool there) {
  double ns = link.latency_ns * (1 + (there ? link.asymmetry : -link.asymmetry));
  if (link.heavy) {
    ns += link.jitter_ns * (std::pow(1 - chance.even(), -1 / 1.5) - 1);
  } else {
    ns += chance.exponential(link.jitter_ns);
  }
  if (link.preempted > 0 && chance.even() < link.preempted) {
    ns += chance.exponential(link.held_up_ns);
  }
  for (double again = link.again_ns; link.loss > 0 && chance.even() < link.loss; again *= 2) {
    ns += again;
  }
  return std::llround(ns);
}

Exchange simulated_exchange(const SimulatedClock& asker, const SimulatedClock& answerer, const LinkSetup& link,
                            Chance& chance, std::int64_t& truth) {
  Exchange exchange;
  exchange.start = asker.at(truth);
  truth += travel(link, chance, true);
  exchange.middle = answerer.at(truth);
  truth += travel(link, chance, false);
  exchange.end = asker.at(truth);
  return exchange;
}

std::optional<Compared> simulated_comparison(const SimulatedClock& asker, const SimulatedClock& answerer,
                                             const LinkSetup& link, Chance& chance, std::int64_t& truth,
                                             std::int64_t& exchanges) {
  const auto first = compared([&] {
    ++exchanges;
    return simulated_exchange(asker, answerer, link, chance, truth);
  });
  LinkSetup back = link;
  back.asymmetry = -link.asymmetry;
  const auto second = compared([&] {
    ++exchanges;
    return simulated_exchange(answerer, asker, back, chance, truth);
  });
  return first && second ? std::optional(both(*first, *second)) : std::nullopt;
}

}  // namespace elbowroom::clock

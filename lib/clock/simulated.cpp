#include "simulated.hpp"

#include <cmath>
#include <numbers>

namespace elbowroom::clock {
namespace {

constexpr double kSecond = 1e9;  // ns
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
  Chance chance(seed);
  double rate = 0;
  double gained = 0;
  for (std::int64_t second = 0; second <= duration / static_cast<std::int64_t>(kSecond) + 1; ++second) {
    rates_.push_back(rate);
    walked_.push_back(gained);
    gained += rate * kPpm * kSecond;
    rate += setup_.walk_ppm * chance.normal();
  }
}

double SimulatedClock::gained(std::int64_t truth) const {
  const double time = static_cast<double>(truth);
  double sum = setup_.drift_ppm * kPpm * time;
  const double turn = 2 * std::numbers::pi / (setup_.wave_s * kSecond);
  sum += setup_.wave_ppm * kPpm / turn * (std::cos(setup_.wave_phase) - std::cos(turn * time + setup_.wave_phase));
  const double cycle = 2 * setup_.slew_s * kSecond;
  const double whole = std::floor(time / cycle);
  sum += setup_.slew_ppm * kPpm * (whole * cycle / 2 + std::fmin(time - whole * cycle, cycle / 2));
  auto second = static_cast<std::size_t>(std::fmax(time / kSecond, 0));
  second = second < walked_.size() ? second : walked_.size() - 1;
  return sum + walked_[second] + rates_[second] * kPpm * (time - static_cast<double>(second) * kSecond);
}

std::int64_t SimulatedClock::at(std::int64_t truth) const {
  std::int64_t local = truth + setup_.offset + std::llround(gained(truth));
  for (const Step& step : setup_.steps) {
    local += truth >= step.at ? step.by : 0;
  }
  return local;
}

std::optional<Exchange> simulated_exchange(const SimulatedClock& asker, const SimulatedClock& answerer,
                                           const LinkSetup& link, Chance& chance, std::int64_t& truth) {
  const auto travel = [&](double sign) {
    double ns = link.latency_ns * (1 + sign * link.asymmetry) + chance.exponential(link.jitter_ns);
    if (chance.even() < link.preempted) {
      ns += chance.exponential(link.held_up_ns);
    }
    return std::llround(ns);
  };
  if (chance.even() < link.loss) {
    truth += std::llround(100 * link.latency_ns);
    return std::nullopt;
  }
  Exchange exchange;
  exchange.start = asker.at(truth);
  truth += travel(1);
  exchange.middle = answerer.at(truth);
  truth += travel(-1);
  exchange.end = asker.at(truth);
  return exchange;
}

std::optional<Offset> simulated_offset(const SimulatedClock& asker, const SimulatedClock& answerer,
                                       const LinkSetup& link, Chance& chance, std::int64_t& truth, int most) {
  Envelope envelope(100 * kPpm);
  for (int tried = 0; tried < most && !envelope.settled(); ++tried) {
    if (const auto exchange = simulated_exchange(asker, answerer, link, chance, truth)) {
      envelope.add(*exchange);
    }
  }
  return envelope.offset();
}

}  // namespace elbowroom::clock

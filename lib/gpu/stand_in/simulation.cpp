#include "gpu/stand_in/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

namespace elbowroom::stand_in {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-12;  // s

}  // namespace

Simulation::Simulation(Settings settings) : settings_(std::move(settings)) { started_ = host_s(); }

double Simulation::host_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Simulation::Stream Simulation::add_stream() { return streams_.emplace(streams_.end()); }

void Simulation::remove_stream(Stream stream) { streams_.erase(stream); }

bool Simulation::empty() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.empty(); });
}

void Simulation::put(Stream stream, Operation operation) {
  advance();
  stream->push_back(std::move(operation));
  finish_ended();
}

// A holder counts from the moment that it has its SMs: done_s is above 0 from then on.
int Simulation::held() const {
  int sum = 0;
  for (const auto& stream : streams_) {
    if (!stream.empty() && stream.front().held > 0 && stream.front().done_s > 0) sum += stream.front().held;
  }
  return sum;
}

bool Simulation::runs(const Operation& operation) const {
  if (operation.loads && operation.done_s == 0 && held() > 0) return false;
  if (operation.held > 0) return operation.done_s > 0 || held() + operation.held <= settings_.sms;
  return !operation.on_sms || held() < settings_.sms;
}

double Simulation::rate(const Operation& operation) const {
  double rate = operation.gain;
  double sharing = 0;
  for (const auto& stream : streams_) {
    if (stream.empty() || !runs(stream.front())) continue;
    const Operation& other = stream.front();
    sharing += other.name == operation.name ? 1 : 0;
    if (&other == &operation) continue;
    if (other.stop_on_host && operation.on_sms) rate *= settings_.host_flag_kept;
    for (const Interference& one : settings_.interference) {
      const bool fits = one.held == 0 || one.held == other.held;
      if (one.victim == operation.name && one.mover == other.name && fits) rate *= one.kept;
    }
  }
  return rate / std::max(1.0, sharing);
}

// s until the first operation that runs ends; kNever where none does.
double Simulation::next_end() const {
  double least = kNever;
  for (const auto& stream : streams_) {
    if (stream.empty() || stream.front().held > 0 || !runs(stream.front())) continue;
    const Operation& operation = stream.front();
    least = std::min(least, std::max(0.0, operation.work_s - operation.done_s) / rate(operation));
  }
  return least;
}

void Simulation::pass(double seconds) {
  std::list<std::pair<Operation*, double>> progress;
  for (auto& stream : streams_) {
    if (!stream.empty() && runs(stream.front())) {
      progress.emplace_back(&stream.front(), seconds * rate(stream.front()));
    }
  }
  for (const auto& [operation, done] : progress) operation->done_s += done;
  now_ += seconds;
}

void Simulation::finish_ended() {
  for (bool again = true; again && !lost();) {
    again = false;
    for (auto& stream : streams_) {
      if (stream.empty()) continue;
      Operation& operation = stream.front();
      if (operation.held > 0 && operation.done_s == 0 && runs(operation)) {
        operation.done_s = kRounding;
        if (operation.start) operation.start();
        again = true;
      }
      const bool ended = operation.held > 0 ? operation.done_s > 0 && *operation.stop != 0
                                            : runs(operation) && operation.done_s + kRounding >= operation.work_s;
      if (!ended) continue;
      const Operation done = std::move(operation);
      stream.pop_front();
      ++finished_;
      if (done.finish) done.finish(now_, done.done_s);
      again = true;
    }
  }
}

void Simulation::advance_to(double end) {
  finish_ended();
  for (double step = next_end(); now_ + step <= end && !lost(); step = next_end()) {
    pass(step);
    finish_ended();
  }
  if (end > now_) pass(end - now_);
}

void Simulation::advance() {
  if (settings_.virtual_clock) {
    finish_ended();
  } else {
    advance_to(host_s() - started_);
  }
}

void Simulation::query() {
  if (settings_.virtual_clock) {
    advance_to(now_ + settings_.query_s);
  } else {
    advance();
  }
}

bool Simulation::wait(const std::function<bool()>& ready) {
  for (advance(); !ready() && !lost(); advance()) {
    const double step = next_end();
    if (step == kNever) return false;
    if (settings_.virtual_clock) {
      advance_to(now_ + step);
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(step));
    }
  }
  return true;
}

}  // namespace elbowroom::stand_in

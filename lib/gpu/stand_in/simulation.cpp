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
constexpr double kStepsOfRise = 100;

}  // namespace

Simulation::Simulation(Settings settings) : settings_(std::move(settings)) { started_ = host_s(); }

double Simulation::host_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Simulation::Stream Simulation::add_stream() {
  const Stream stream = streams_.emplace(streams_.end());
  stream->queue = made_++ % settings_.connections;
  return stream;
}

void Simulation::remove_stream(Stream stream) { streams_.erase(stream); }

bool Simulation::empty() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.empty(); });
}

void Simulation::put(Stream stream, Operation operation) {
  advance();
  operation.order = ++put_;
  stream->push_back(std::move(operation));
  finish_ended();
}

double Simulation::pace() const {
  return settings_.rise_s > 0 ? std::min(1.0, 0.2 + 0.8 * busy_s_ / settings_.rise_s) : 1;
}

// A holder counts from the moment that it has its SMs.
int Simulation::held() const {
  int sum = 0;
  for (const auto& stream : streams_) {
    if (!stream.empty() && stream.front().started) sum += stream.front().held;
  }
  return sum;
}

bool Simulation::waits_in_queue(const Queued& stream) const {
  const auto before = [&](const Operation& other) { return !other.started && other.order < stream.front().order; };
  return std::any_of(streams_.begin(), streams_.end(), [&](const Queued& other) {
    return &other != &stream && other.queue == stream.queue && std::any_of(other.begin(), other.end(), before);
  });
}

bool Simulation::sms_work_beside(const Queued& stream) const {
  const auto works = [](const Operation& other) { return other.on_sms && other.held == 0; };
  return std::any_of(streams_.begin(), streams_.end(), [&](const Queued& other) {
    return &other != &stream && std::any_of(other.begin(), other.end(), works);
  });
}

// SMs get more shared memory only while nothing works on them.
bool Simulation::can_start(const Queued& stream) const {
  const Operation& operation = stream.front();
  if (waits_in_queue(stream) || (operation.loads && held() > 0)) return false;
  if (operation.held == 0) return !operation.on_sms || held() < settings_.sms;
  return held() + operation.held <= settings_.sms && (shared_ || !sms_work_beside(stream));
}

void Simulation::start(Queued& stream) {
  Operation& operation = stream.front();
  const bool free = held() == 0 && !sms_work_beside(stream);
  if (operation.carveout != Carveout::any && free) shared_ = operation.carveout == Carveout::shared;
  operation.started = true;
  if (operation.start) operation.start();
}

bool Simulation::runs(const Queued& stream) const {
  if (stream.empty() || !stream.front().started) return false;
  return stream.front().held > 0 || !stream.front().on_sms || held() < settings_.sms;
}

double Simulation::rate(const Operation& operation) const {
  double rate = operation.gain * pace();
  double sharing = 0;
  for (const auto& stream : streams_) {
    if (!runs(stream)) continue;
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
    if (!runs(stream) || stream.front().held > 0) continue;
    const Operation& operation = stream.front();
    least = std::min(least, std::max(0.0, operation.work_s - operation.done_s) / rate(operation));
  }
  // Rates change while clocks rise.
  return least < kNever && pace() < 1 ? std::min(least, settings_.rise_s / kStepsOfRise) : least;
}

void Simulation::pass(double seconds) {
  std::list<std::pair<Operation*, double>> progress;
  for (auto& stream : streams_) {
    if (runs(stream)) progress.emplace_back(&stream.front(), seconds * rate(stream.front()));
  }
  now_ += seconds;
  if (!progress.empty()) busy_s_ += seconds;
  for (const auto& [operation, done] : progress) {
    operation->done_s += done;
    if (operation->progresses) operation->progresses(now_, operation->done_s);
  }
}

void Simulation::finish_ended() {
  for (bool again = true; again && !lost();) {
    again = false;
    for (auto& stream : streams_) {
      if (stream.empty()) continue;
      if (!stream.front().started && can_start(stream)) {
        start(stream);
        again = true;
      }
      Operation& operation = stream.front();
      const bool stopped = operation.held > 0 && *operation.stop != 0 && !settings_.stop_ignored;
      const bool ended = operation.held > 0 ? operation.started && stopped
                                            : runs(stream) && operation.done_s + kRounding >= operation.work_s;
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

void Simulation::spend(double seconds) {
  if (settings_.virtual_clock) {
    advance_to(now_ + seconds);
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

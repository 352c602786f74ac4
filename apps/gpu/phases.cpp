#include "phases.hpp"

#include <algorithm>
#include <chrono>

namespace elbowroom::gpu_bench {
namespace {

using Clock = std::chrono::steady_clock;

const char* const kStuck = "a load did not get on: the other side holds what it needs";

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

class Phase {
 public:
  Phase(const std::vector<Side*>& sides, const Timing& timing) : timing_(timing) {
    for (Side* const side : sides) {
      for (const auto& load : *side) loads_.push_back(load.get());
    }
  }
  ~Phase() {
    try {
      stop();
    } catch (const std::exception&) {  // the device is lost: nothing runs any more
    }
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  void start() {
    for (Load* const load : loads_) {
      ++started_;
      load->start();
      poll_until([&] { return load->running(); }, "a load did not start: the other side holds what it needs");
    }
    if (timing_.look) timing_.look();
    // Looking takes time, in which streams may have run empty.
    for (Load* const load : loads_) load->settle();
    poll_until([&] { return std::all_of(loads_.begin(), loads_.end(), [](Load* load) { return load->running(); }); },
               kStuck);
  }

  void measure() {
    for (Load* const load : loads_) load->begin();
    const auto begun = Clock::now();
    const auto enough = [&] {
      return seconds_since(begun) >= timing_.seconds && std::all_of(loads_.begin(), loads_.end(), [&](Load* load) {
               return load->measured_s() >= timing_.seconds;
             });
    };
    poll_until(enough, kStuck);
    for (Load* const load : loads_) load->end();
  }

  // Holders of SMs first: what waits for SMs ends only after them.
  void stop() {
    const std::vector<Load*> started(loads_.begin(), loads_.begin() + static_cast<std::ptrdiff_t>(started_));
    started_ = 0;
    for (const bool holders : {true, false}) {
      for (Load* const load : started) {
        if (load->holds_sms() == holders) load->stop();
      }
    }
  }

 private:
  const Timing& timing_;
  std::vector<Load*> loads_;
  std::size_t started_ = 0;

  void poll() {
    for (std::size_t i = 0; i < started_; ++i) loads_[i]->poll();
  }

  template <class Ready>
  void poll_until(const Ready& ready, const char* stuck) {
    const auto begun = Clock::now();
    while (!ready()) {
      if (seconds_since(begun) > timing_.patience + timing_.seconds) throw Stuck(stuck);
      poll();
    }
  }
};

}  // namespace

std::vector<Sample> run_phase(const std::vector<Side*>& sides, const Timing& timing) {
  {
    Phase phase(sides, timing);
    phase.start();
    phase.measure();
    phase.stop();
  }
  std::vector<Sample> samples;
  for (const Side* const side : sides) {
    Sample sum = side->front()->sample();
    for (std::size_t i = 1; i < side->size(); ++i) {
      const Sample more = (*side)[i]->sample();
      sum.rate = sum.rate < 0 || more.rate < 0 ? -1 : sum.rate + more.rate;
      sum.units += more.units;
    }
    samples.push_back(sum);
  }
  return samples;
}

}  // namespace elbowroom::gpu_bench

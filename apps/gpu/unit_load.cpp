#include <algorithm>
#include <cmath>

#include "loads.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr double kLeastUnit = 200e-6;  // s: the thread that submits has the time to do so for several loads
constexpr double kMostRounds = 1024;   // of a unit

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(share * last))];
}

}  // namespace

UnitLoad::UnitLoad(const gpu::Context& context, Round round) : context_(context), round_(round), started_(context) {}

// The first launch loads the kernel, and is not timed.
void UnitLoad::warm() {
  const gpu::Stream stream(context_);
  gpu::Event begin(context_);
  gpu::Event end(context_);
  submit(stream);
  stream.synchronize();
  begin.record(stream);
  submit(stream);
  end.record(stream);
  stream.synchronize();
  const double rounds = std::clamp(std::ceil(kLeastUnit / end.seconds_since(begin)), 1.0, kMostRounds);
  if (rounds_ >= rounds && rounds_ <= 2 * rounds) return;
  rounds_ = static_cast<int>(rounds);
  graph_.reset();
  if (calls() > 1 && round_.in_graph) graph_ = gpu::Graph::capture(context_, [&](const auto& one) { submit_all(one); });
  submit_unit(stream);  // a graph, too, gets to the device at its first launch
  stream.synchronize();
}

void UnitLoad::submit_all(const gpu::Stream& stream) {
  for (int i = 0; i < rounds_; ++i) submit(stream);
}

void UnitLoad::submit_unit(const gpu::Stream& stream) {
  if (graph_) {
    graph_->launch(stream);
  } else {
    submit_all(stream);
  }
}

std::vector<Flag> UnitLoad::flags() const {
  if (calls() <= kFewCalls || graph_) return {};
  return {{"no_graph", "the driver makes no graph of small operations: submitting them may limit their rate"}};
}

void UnitLoad::submit_one() {
  if (spare_.empty()) spare_.push_back(std::make_unique<gpu::Event>(context_));
  submit_unit(*stream_);
  spare_.back()->record(*stream_);
  flying_.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

void UnitLoad::start() {
  ends_.clear();
  settled_from_ = begun_ = ended_ = 0;
  stream_.emplace(context_);
  started_.record(*stream_);
  while (flying_.size() < kInFlight) submit_one();
}

// At most those that were in flight, so that others have their turn.
void UnitLoad::poll() {
  for (std::size_t i = flying_.size(); i > 0 && flying_.front()->done(); --i) {
    ends_.push_back(flying_.front()->seconds_since(started_));
    spare_.push_back(std::move(flying_.front()));
    flying_.pop_front();
    submit_one();
  }
}

double UnitLoad::measured_s() const {
  if (ends_.size() < begun_ + kLeast || begun_ == 0) return 0;
  return ends_.back() - ends_[begun_ - 1];
}

void UnitLoad::stop() {
  if (!stream_) return;
  stream_->synchronize();
  stream_.reset();
  for (auto& event : flying_) spare_.push_back(std::move(event));
  flying_.clear();
}

Sample UnitLoad::sample() const {
  Sample sample;
  if (begun_ == 0 || ended_ <= begun_) return sample;
  sample.units = ended_ - begun_;
  sample.rate = round_.work * rounds_ * static_cast<double>(sample.units) / (ends_[ended_ - 1] - ends_[begun_ - 1]);
  if (round_.steps > 0) {
    const double steps = round_.steps * rounds_;
    std::vector<double> times;
    for (std::size_t i = begun_; i < ended_; ++i) times.push_back(1e6 * (ends_[i] - ends_[i - 1]) / steps);
    sample.p50_us = quantile(times, 0.5);
    sample.p99_us = quantile(times, 0.99);
  }
  return sample;
}

}  // namespace elbowroom::gpu_bench

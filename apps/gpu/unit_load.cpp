#include <algorithm>
#include <cmath>

#include "loads.hpp"

namespace elbowroom::gpu_bench {
namespace {

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(share * last))];
}

}  // namespace

UnitLoad::UnitLoad(const gpu::Context& context, double work_per_unit, int steps)
    : context_(context), stream_(context), started_(context), work_(work_per_unit), steps_(steps) {}

void UnitLoad::warm() {
  submit(stream_);
  stream_.synchronize();
}

void UnitLoad::submit_one() {
  if (spare_.empty()) spare_.push_back(std::make_unique<gpu::Event>(context_));
  submit(stream_);
  spare_.back()->record(stream_);
  flying_.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

void UnitLoad::start() {
  ends_.clear();
  settled_from_ = begun_ = ended_ = 0;
  started_.record(stream_);
  while (flying_.size() < kInFlight) submit_one();
}

void UnitLoad::poll() {
  while (!flying_.empty() && flying_.front()->done()) {
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
  stream_.synchronize();
  for (auto& event : flying_) spare_.push_back(std::move(event));
  flying_.clear();
}

Sample UnitLoad::sample() const {
  Sample sample;
  if (begun_ == 0 || ended_ <= begun_) return sample;
  sample.units = ended_ - begun_;
  sample.rate = work_ * static_cast<double>(sample.units) / (ends_[ended_ - 1] - ends_[begun_ - 1]);
  if (steps_ > 0) {
    std::vector<double> times;
    for (std::size_t i = begun_; i < ended_; ++i) times.push_back(1e6 * (ends_[i] - ends_[i - 1]) / steps_);
    sample.p50_us = quantile(times, 0.5);
    sample.p99_us = quantile(times, 0.99);
  }
  return sample;
}

}  // namespace elbowroom::gpu_bench

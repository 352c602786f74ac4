#include "nic/fluid.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom::nic {

void Fluid::start(const Nic& nic, std::int64_t now) {
  *this = Fluid();
  nic_ = nic;
  rate_ = nic.bandwidth * 1e-9;
  now_ = now;
  tokens_.fill(nic.burst);
}

int Fluid::open(int owner, int source, int target) {
  const auto free = std::find_if(flows_.begin(), flows_.end(), [](const Flow& flow) { return flow.owner == 0; });
  if (free == flows_.end()) {
    return -1;
  }
  *free = Flow{};
  free->owner = owner;
  free->source = static_cast<std::size_t>(source);
  free->target = static_cast<std::size_t>(kNodes + target);
  free->last = now_ - kContinues - 1;
  const int index = static_cast<int>(free - flows_.begin());
  used_ = std::max(used_, index + 1);
  return index;
}

// Max-min fairness: the end with the least for each of its flows determines their rates; what they leave at their other
// ends is for the others.
void Fluid::share() {
  left_.fill(rate_);
  std::array<int, 2 * kNodes> undecided{};
  constexpr double kUndecided = -1;
  int count = 0;
  for (int i = 0; i < used_; ++i) {
    Flow& flow = flows_[static_cast<std::size_t>(i)];
    flow.rate = 0;
    if (filling(flow)) {
      flow.rate = kUndecided;
      ++undecided[flow.source];
      ++undecided[flow.target];
      ++count;
    }
  }
  while (count > 0) {
    std::size_t tightest = 0;
    double least = INFINITY;
    for (std::size_t end = 0; end < undecided.size(); ++end) {
      if (undecided[end] > 0 && left_[end] / undecided[end] < least) {
        least = left_[end] / undecided[end];
        tightest = end;
      }
    }
    for (int i = 0; i < used_; ++i) {
      Flow& flow = flows_[static_cast<std::size_t>(i)];
      if (flow.rate == kUndecided && (flow.source == tightest || flow.target == tightest)) {
        flow.rate = std::max(least, 0.0);
        for (const std::size_t end : {flow.source, flow.target}) {
          left_[end] -= flow.rate;
          --undecided[end];
        }
        --count;
      }
    }
  }
}

// Until when the rates stay as they are.
std::int64_t Fluid::next_change(std::int64_t now) const {
  std::int64_t step = now - now_;
  for (int i = 0; i < used_; ++i) {
    const Flow& flow = flows_[static_cast<std::size_t>(i)];
    if (filling(flow) && flow.rate > 0) {
      const double full = std::ceil((flow.window - flow.credit) / flow.rate);
      step = full < static_cast<double>(step) ? static_cast<std::int64_t>(full) : step;
    } else if (flow.owner != 0 && flow.waiting && flow.opens > now_) {
      step = std::min(step, flow.opens - now_);
    }
  }
  return std::max<std::int64_t>(step, 1);
}

void Fluid::advance(std::int64_t now) {
  while (now_ < now) {
    share();
    const std::int64_t step = next_change(now);
    const auto length = static_cast<double>(step);
    for (int i = 0; i < used_; ++i) {
      Flow& flow = flows_[static_cast<std::size_t>(i)];
      if (flow.rate > 0) {
        flow.credit = std::min(flow.window, flow.credit + flow.rate * length);
        flow.filled_at = flow.rate;
        flow.filled = now_ + step;
      }
    }
    for (std::size_t end = 0; end < tokens_.size(); ++end) {
      tokens_[end] = std::min(nic_.burst, tokens_[end] + std::max(left_[end], 0.0) * length);
    }
    now_ += step;
  }
}

// A flow that wants something, and did not wait.
void Fluid::begin(Flow& flow, std::int64_t now) {
  flow.since = now;
  if (now - flow.last > kContinues) {
    flow.credit = 0;
    flow.opens = now + nic_.latency_ns;
  }
}

Grant Fluid::refuse(Flow& flow, double wanted, double missing) {
  flow.waiting = true;
  flow.window = std::clamp(wanted, kWindow, kLargestWindow);
  share();
  const double nanoseconds = flow.rate > 0 ? std::ceil(missing / flow.rate) : 0;
  const std::int64_t closed = std::max<std::int64_t>(flow.opens - now_, 0);
  return {0, std::max<std::int64_t>(closed + static_cast<std::int64_t>(nanoseconds), 1), flow.since};
}

// When the granted bytes were there: what was sent beyond them came after, and bytes of the burst count as carried from when
// they were wanted.
std::int64_t Fluid::carried(const Flow& flow, double granted) const {
  const std::int64_t alone = flow.since + static_cast<std::int64_t>(granted / rate_);
  if (!flow.waiting || flow.filled_at <= 0) {
    return alone;
  }
  const double beyond = std::max(flow.credit - granted, 0.0) / flow.filled_at;
  return std::max(alone, flow.filled - static_cast<std::int64_t>(beyond));
}

Grant Fluid::take(int index, std::size_t wanted_bytes, std::int64_t now) {
  advance(now);
  Flow& flow = flows_[static_cast<std::size_t>(index)];
  if (!flow.waiting) {
    begin(flow, now_);
  }
  const auto wanted = static_cast<double>(wanted_bytes);
  double& egress = tokens_[flow.source];
  double& ingress = tokens_[flow.target];
  const double available = flow.opens > now_ ? 0 : flow.credit + std::min(egress, ingress);
  const double least = std::min(wanted, kQuantum);
  if (available < least) {
    return refuse(flow, wanted, least - available);
  }
  const double granted = std::floor(std::min(wanted, available));
  const std::int64_t ended = carried(flow, granted);
  const double of_credit = std::min(granted, flow.credit);
  flow.credit -= of_credit;
  egress -= granted - of_credit;
  ingress -= granted - of_credit;
  const Grant grant{static_cast<std::size_t>(granted), 0, flow.since, ended};
  flow.waiting = granted < wanted;
  flow.since = flow.last = now_;
  return grant;
}

}  // namespace elbowroom::nic

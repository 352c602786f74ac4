#include "exchange/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "observe/tracing.hpp"
#include "protocol/batching.hpp"
#include "protocol/steady.hpp"

namespace elbowroom {
namespace {

constexpr int kHeaderTag = 2;
constexpr std::uint32_t kHeadersNumber = 2;  // of the communicator, in a trace
constexpr std::uint64_t kSeedStep = 8;       // seeds of one batch differ by less than this
constexpr int kWarmUpRounds = 8;             // of calibration, at most

// Contents that cannot be right: what a broken transfer would leave.
constexpr std::uint64_t kCorruption = 100;

}  // namespace

struct Exchange::Header {
  enum Kind : std::int64_t { end = 0, batch = 1, whole = 2 };
  std::int64_t kind;
  std::int64_t iterations;  // at the end: index of the first measured batch
  std::uint64_t seed;
};

Exchange::Exchange(const Job& job, std::function<void(int)> bind) : job_(job), bind_(std::move(bind)) {}

void Exchange::use(std::vector<Lane> lanes, const std::vector<int>& cores, bool corrupt) {
  lanes_ = std::move(lanes);
  corrupt_ = corrupt;
  checked_whole_ = false;
  iterations_ = lanes_.empty() ? 1 : least_iterations(lanes_.front().pattern);
  used_.clear();
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    auto it =
        std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) { return thread->core() == cores[i]; });
    if (it == threads_.end()) {
      threads_.push_back(std::make_unique<BoundThread>(cores[i], bind_));
      it = threads_.end() - 1;
    }
    used_.push_back(it->get());
  }
}

// Threads of further lanes wait by yielding while an exchange is on (their cores are theirs), and are parked otherwise.
void Exchange::start_lanes(PhaseObserver& observer) {
  observer_ = &observer;
  observer_->join();
  failed_.store(false);
  generation_.store(0);
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    used_[i - 1]->post([this, i] { lane_loop(i); });
  }
}

void Exchange::lane_loop(std::size_t lane) {
  observer_->join();
  for (std::uint64_t current = 0;;) {
    while (generation_.load(std::memory_order_acquire) == current) {
      sched_yield();
    }
    ++current;
    if (task_ == nullptr) {
      break;
    }
    if (!(*task_)(lane)) {
      failed_.store(true);
    }
    pending_.fetch_sub(1, std::memory_order_release);
  }
  observer_->leave();
}

bool Exchange::on_lanes(const std::function<bool(std::size_t)>& task) {
  if (lanes_.size() == 1) {
    return task(0);
  }
  task_ = &task;
  pending_.store(lanes_.size() - 1);
  generation_.fetch_add(1, std::memory_order_release);
  const bool own = task(0);
  while (pending_.load(std::memory_order_acquire) > 0) {
    sched_yield();
  }
  return !failed_.exchange(false) && own;
}

void Exchange::finish_lanes() {
  task_ = nullptr;
  generation_.fetch_add(1, std::memory_order_release);
  for (BoundThread* thread : used_) {
    thread->wait();
  }
  observer_->leave();
}

bool Exchange::announce(const Header& header) {
  const Lane& lane = lanes_.front();
  const int followers = lane.pattern == Pattern::ring ? lane.ranks : 2;
  for (int rank = 1; rank < followers; ++rank) {
    elbow_trace_send(traced(Traced::announcement), rank, kHeadersNumber, kHeaderTag, sizeof header);
    MPI_Send(&header, sizeof header, MPI_BYTE, rank, kHeaderTag, job_.headers());
  }
  std::int64_t holds = 1;
  for (int rank = 1; rank < followers; ++rank) {
    std::int64_t own = 0;
    MPI_Recv(&own, sizeof own, MPI_BYTE, rank, kHeaderTag, job_.headers(), MPI_STATUS_IGNORE);
    elbow_trace_receive(traced(Traced::announcement), rank, kHeadersNumber, kHeaderTag, sizeof own);
    holds = std::min(holds, own);
  }
  return holds == 1;
}

// What a rank sends and expects comes from the header's seed, except on the rank that a test corrupts.
bool Exchange::run(const Header& header, Batch& batch) {
  if (header.kind == Header::whole) {
    return on_lanes([&](std::size_t i) { return whole_message_holds(lanes_[i], header.seed); });
  }
  const std::uint64_t seed = corrupt_ ? header.seed + kCorruption : header.seed;
  const TracedSpan span(traced_batch(name_of(lanes_.front().pattern)), static_cast<std::uint64_t>(lanes_.front().size),
                        static_cast<std::uint64_t>(header.iterations));
  batch = {now_ns(), 0, header.iterations};
  bool holds = true;
  if (due_.empty()) {
    holds = on_lanes([&](std::size_t i) { return run_batch(lanes_[i], header.iterations, seed); });
  } else {
    ping_when_due(lanes_.front(), period_ns_, due_);
  }
  batch.end = now_ns();
  for (const Lane& lane : lanes_) {
    holds = batch_holds(lane, header.iterations, header.seed) && holds;
  }
  return holds;
}

bool Exchange::batch(std::int64_t iterations) {
  seed_ += kSeedStep;
  const Header header{Header::batch, iterations, seed_};
  for (const Lane& lane : lanes_) {
    prepare_batch(lane, iterations, seed_);
  }
  const bool followers_held = announce(header);
  Batch done{};
  const bool held = run(header, done);
  done_.push_back(done);
  return followers_held && held;
}

bool Exchange::whole_message() {
  seed_ += kSeedStep;
  const Header header{Header::whole, 1, seed_};
  const bool followers_held = announce(header);
  Batch none{};
  return run(header, none) && followers_held;
}

// The first message of a repetition is checked byte by byte and is the first warm-up. Then batches of the same size and
// buffers, until one lasts long enough.
bool Exchange::warm_up(const Request& request, double target_ns) {
  bool holds = true;
  if (!checked_whole_) {
    holds = whole_message();
    checked_whole_ = true;
  }
  const std::int64_t least = least_iterations(request.pattern);
  for (int round = 0; round < kWarmUpRounds; ++round) {
    holds = batch(iterations_) && holds;
    const auto took = static_cast<double>(done_.back().end - done_.back().start);
    if (batch_fits(iterations_, took, target_ns, least)) {
      break;
    }
    iterations_ = next_iterations(iterations_, took, target_ns, least);
  }
  return holds;
}

// Batches until the quantity was steady for the whole window. What came before the steady part is not measured; without
// one inside the limit everything after the warm-up is, and is reported as not stable.
void Exchange::measure(const Request& request, ExchangeReport& report) {
  SteadyDetector detector(request.steady_window, request.steady_cov);
  const std::size_t begin = done_.size();
  for (;;) {
    report.holds = batch(iterations_) && report.holds;
    const Batch& last = done_.back();
    const bool steady = detector.add(static_cast<double>(last.end - last.start) / static_cast<double>(last.iterations));
    const std::size_t first = begin + (steady ? detector.first() : 0);
    const double elapsed = static_cast<double>(last.end - done_[first].start) * 1e-9;
    const bool enough = done_.size() - first >= request.steady_window;
    const double least = steady ? request.window : std::max(request.window, request.steady_limit);
    if (enough && elapsed >= least) {
      report.steady = steady;
      report.batches.assign(done_.begin() + static_cast<std::ptrdiff_t>(first), done_.end());
      break;
    }
  }
  report.window = {report.batches.front().start, report.batches.back().end};
}

// One batch whose messages are due at fixed times: a delay of one of them must not put off those that follow. There is no
// steady state to wait for, since what disturbs a window is what is looked for.
void Exchange::measure_due(const Request& request, ExchangeReport& report) {
  // Of the fastest batch: a stall in one says nothing of the others.
  double round_trip = std::numeric_limits<double>::infinity();
  for (const Batch& warm : done_) {
    round_trip =
        std::min(round_trip, static_cast<double>(warm.end - warm.start) / static_cast<double>(warm.iterations));
  }
  const std::int64_t count = due_messages(request.window, request.period, round_trip);
  period_ns_ = request.period * 1e9;
  due_.assign(static_cast<std::size_t>(count), DueMessage{});
  report.holds = batch(count) && report.holds;
  report.due.swap(due_);
  due_.clear();
  report.steady = true;
  report.batches = {done_.back()};
  report.window = {done_.back().start, done_.back().end};
}

ExchangeReport Exchange::lead(const Request& request, double minimum_ns, PhaseObserver& observer) {
  ExchangeReport report;
  done_.clear();
  start_lanes(observer);
  report.holds = warm_up(request, batch_target_ns(request.window, minimum_ns));
  request.period > 0 ? measure_due(request, report) : measure(request, report);
  const auto first = static_cast<std::int64_t>(done_.size() - report.batches.size());
  report.holds = announce({Header::end, first, 0}) && report.holds;
  finish_lanes();
  return report;
}

// Answers tell whether what had to arrive in the batch before did; the last answer tells it of the last batch.
ExchangeReport Exchange::follow(PhaseObserver& observer) {
  ExchangeReport report;
  done_.clear();
  start_lanes(observer);
  bool held = true;
  for (;;) {
    Header header{};
    MPI_Recv(&header, sizeof header, MPI_BYTE, 0, kHeaderTag, job_.headers(), MPI_STATUS_IGNORE);
    elbow_trace_receive(traced(Traced::announcement), 0, kHeadersNumber, kHeaderTag, sizeof header);
    if (header.kind == Header::batch) {
      for (const Lane& lane : lanes_) {
        prepare_batch(lane, header.iterations, header.seed);
      }
    }
    report.holds = report.holds && held;
    const std::int64_t answer = held ? 1 : 0;
    elbow_trace_send(traced(Traced::announcement), 0, kHeadersNumber, kHeaderTag, sizeof answer);
    MPI_Send(&answer, sizeof answer, MPI_BYTE, 0, kHeaderTag, job_.headers());
    if (header.kind == Header::end) {
      const auto first = std::min(done_.size(), static_cast<std::size_t>(header.iterations));
      report.batches.assign(done_.begin() + static_cast<std::ptrdiff_t>(first), done_.end());
      break;
    }
    Batch done{};
    held = run(header, done);
    if (header.kind == Header::batch) {
      done_.push_back(done);
    }
  }
  if (!report.batches.empty()) {
    report.window = {report.batches.front().start, report.batches.back().end};
  }
  report.steady = true;
  finish_lanes();
  return report;
}

}  // namespace elbowroom

#include "exchange/extraneous.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "protocol/payload.hpp"

namespace elbowroom {
namespace {

constexpr int kWindowTag = 3;
constexpr int kClockRounds = 64;             // messages each way, of which the quickest tells about the clocks
constexpr int kWarmUpMessages = 32;          // without accesses, before the first size
constexpr std::size_t kCountedMessages = 4;  // of a size and kind, where misses are counted
constexpr int kMostTries = 20;               // of messages that the receiver was late for
constexpr double kPatienceAfterBarrierNs = 1e3;
constexpr double kPatienceWithoutNs = 5e3;
constexpr double kAccessMargin = 0.25;   // that the receiver's accesses may take longer than before
constexpr std::uint64_t kDataStep = 8;   // of different data
constexpr std::uint64_t kNoMessage = 3;  // what lies in the receiver's buffer before a message is no message
constexpr std::uint64_t kWrongMessage = 100;
constexpr double kLateness = 20e-3;  // s, of a test: far more than the sender waits, unless it is held up itself

}  // namespace

ExtraneousExchange::ExtraneousExchange(const Job& job, std::function<void(int)> bind)
    : job_(job), bystanders_(std::move(bind)) {}

void ExtraneousExchange::use(const Request& request, const Placement& placement, char* message) {
  request_ = request;
  extraneous_ = *request.extraneous;
  message_ = message;
  const auto bytes = static_cast<std::size_t>(extraneous_.largest());
  array_.reset();
  if (extraneous_.touches(job_.rank())) {
    array_.emplace(bytes, placement.comm_node, extraneous_.writes);
  }
  const bool beside = has_bystanders(request, job_.rank());
  bystanders_.use(beside ? placement.comp_cores : std::vector<int>{}, bytes, placement.comp_node, extraneous_.writes,
                  extraneous_.processes);
}

void ExtraneousExchange::begin(PhaseObserver& observer) {
  observer.join();
  bystanders_.start(observer);
  stamps_.assign(static_cast<std::size_t>(2 * extraneous_.messages()), Stamp{});
  patience_ns_ = extraneous_.of_calls() ? 0 : extraneous_.barrier ? kPatienceAfterBarrierNs : kPatienceWithoutNs;
  seed_ = 0;
  holds_ = overlapped_ = true;
  seconds_ = {};
}

// The clock is one for all cores of a host, or so it says: messages in both directions would show it if it were not.
ClockCheck ExtraneousExchange::check_clocks() const {
  const int other = 1 - job_.rank();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < kClockRounds; ++round) {
    for (const int sender : {0, 1}) {
      std::int64_t there = host_ticks();
      if (sender == job_.rank()) {
        MPI_Send(&there, 1, MPI_INT64_T, other, kWindowTag, job_.messages());
      } else {
        MPI_Recv(&there, 1, MPI_INT64_T, other, kWindowTag, job_.messages(), MPI_STATUS_IGNORE);
        least = std::min(least, host_ticks() - there);
      }
    }
  }
  std::int64_t others = least;
  MPI_Sendrecv(&least, 1, MPI_INT64_T, other, kWindowTag, &others, 1, MPI_INT64_T, other, kWindowTag, job_.headers(),
               MPI_STATUS_IGNORE);
  return {static_cast<double>(others) * host_tick_ns(), static_cast<double>(least) * host_tick_ns()};
}

// How long the receiver's accesses take, so that a sender without a barrier knows when it will be back in MPI_Recv. The
// first time of each size is the warm-up.
void ExtraneousExchange::calibrate() {
  receiver_ticks_.assign(static_cast<std::size_t>(extraneous_.count), 0);
  if (extraneous_.barrier) {
    return;
  }
  const auto count = static_cast<int>(extraneous_.count);
  if (job_.rank() == 0) {
    MPI_Recv(receiver_ticks_.data(), count, MPI_INT64_T, 1, kWindowTag, job_.headers(), MPI_STATUS_IGNORE);
    return;
  }
  for (std::int64_t size = 0; size < extraneous_.count; ++size) {
    for (int time = 0; time < 2; ++time) {
      const std::int64_t start = host_ticks();
      touch({size, true, 0, 0});
      receiver_ticks_[static_cast<std::size_t>(size)] = host_ticks() - start;
    }
  }
  MPI_Send(receiver_ticks_.data(), count, MPI_INT64_T, 0, kWindowTag, job_.headers());
}

// The first message is checked byte by byte. Then messages of the same size and buffers, with the largest accesses last.
void ExtraneousExchange::warm_up() {
  const auto size = static_cast<std::size_t>(request_.size);
  seed_ += kDataStep;
  if (job_.rank() == 0) {
    fill_message(message_, size, seed_);
    MPI_Send(message_, static_cast<int>(size), MPI_BYTE, 1, kWindowTag, job_.messages());
  } else {
    MPI_Recv(message_, static_cast<int>(size), MPI_BYTE, 0, kWindowTag, job_.messages(), MPI_STATUS_IGNORE);
    holds_ = message_holds(message_, size, seed_);
  }
  for (int message = 0; message < kWarmUpMessages; ++message) {
    run({0, false, 0, 0});
  }
  run({extraneous_.count - 1, true, 0, 0});
  seconds_ = {};
}

void ExtraneousExchange::run(const Block& block) {
  const std::int64_t start = host_ticks();
  const bool beside = block.accesses && extraneous_.who == Who::bystanders;
  if (beside && job_.rank() == 0) {
    bystanders_.sweep(static_cast<std::size_t>(extraneous_.bytes(block.size_index)));
    if (request_.fault == "early_stop") {
      bystanders_.rest();
    }
  }
  MPI_Barrier(job_.messages());
  sent_ = host_ticks();
  exchange(block, false);
  if (counter_) {
    counter_->take();
  }
  for (std::size_t message = 0; message < block.messages; ++message) {
    const std::size_t slot = block.first_slot + message;
    stamps_[slot] = exchange(block, faulty(block, slot));
  }
  if (beside) {
    MPI_Barrier(job_.messages());  // the last message is received
    overlapped_ = (job_.rank() != 0 || bystanders_.rest()) && overlapped_;
  }
  seconds_[block.accesses ? 1 : 0] += static_cast<double>(host_ticks() - start) * host_tick_ns() * 1e-9;
}

// Whether a test wants this message to go wrong on this rank: the last one's contents, or the time of the first one's
// receiver (once: a message that is sent again is a block of its own).
bool ExtraneousExchange::faulty(const Block& block, std::size_t slot) const {
  return job_.rank() == 0 ? request_.fault == "message" && slot + 1 == stamps_.size()
                          : request_.fault == "late" && slot == 0 && block.messages > 1;
}

Stamp ExtraneousExchange::exchange(const Block& block, bool wrong) {
  Stamp stamp;
  seed_ += extraneous_.different ? kDataStep : 0;
  job_.rank() == 0 ? send(block, wrong, stamp) : receive(block, wrong, stamp);
  return stamp;
}

void ExtraneousExchange::send(const Block& block, bool corrupt, Stamp& stamp) {
  const auto size = static_cast<std::size_t>(request_.size);
  if (extraneous_.different || corrupt) {
    fill_message(message_, size, corrupt ? seed_ + kWrongMessage : seed_);
  }
  touch(block);
  if (extraneous_.barrier) {
    MPI_Barrier(job_.messages());
    sent_ = host_ticks();
  }
  wait_for_receiver(block);
  if (counter_) {
    counter_->before();
  }
  stamp.start = host_ticks();
  const std::int64_t cpu = cpu_ns();
  MPI_Send(message_, static_cast<int>(size), MPI_BYTE, 1, kWindowTag, job_.messages());
  stamp.cpu_ns = cpu_ns() - cpu;
  stamp.end = host_ticks();
  if (counter_) {
    counter_->after();
  }
  sent_ = stamp.end;
  if (corrupt) {
    fill_message(message_, size, seed_);
  }
}

void ExtraneousExchange::receive(const Block& block, bool late, Stamp& stamp) {
  const auto size = static_cast<std::size_t>(request_.size);
  stamp_message(message_, size, seed_ + kNoMessage);
  touch(block);
  if (extraneous_.barrier) {
    MPI_Barrier(job_.messages());
  }
  if (late) {
    sleep_for(kLateness);
  }
  if (counter_) {
    counter_->before();
  }
  stamp.start = host_ticks();
  const std::int64_t cpu = cpu_ns();
  MPI_Recv(message_, static_cast<int>(size), MPI_BYTE, 0, kWindowTag, job_.messages(), MPI_STATUS_IGNORE);
  stamp.cpu_ns = cpu_ns() - cpu;
  stamp.end = host_ticks();
  if (counter_) {
    counter_->after();
  }
  stamp.holds = stamp_holds(message_, size, seed_) ? 1 : 0;
}

// Of this thread; only looked at where it is timed, since that takes longer than the clock.
std::int64_t ExtraneousExchange::cpu_ns() const {
  if (!extraneous_.by_cpu()) {
    return 0;
  }
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

void ExtraneousExchange::touch(const Block& block) {
  if (block.accesses && array_) {
    array_->touch(static_cast<std::size_t>(extraneous_.bytes(block.size_index)));
  }
}

// Out of a barrier, too, sender and receiver come in any order, which accesses change. The sender waits by the clock
// alone: looking for the receiver would move cache lines between the cores.
void ExtraneousExchange::wait_for_receiver(const Block& block) const {
  const auto accesses = block.accesses ? receiver_ticks_[static_cast<std::size_t>(block.size_index)] : 0;
  const double ticks = static_cast<double>(accesses) * (1 + kAccessMargin) + patience_ns_ / host_tick_ns();
  if (extraneous_.of_calls() && extraneous_.barrier) {
    return;
  }
  const std::int64_t release = sent_ + static_cast<std::int64_t>(ticks);
  while (host_ticks() < release) {
  }
}

void ExtraneousExchange::tell_stamps() const {
  std::vector<Stamp> all = stamps_;
  all.push_back({0, 0, 0, holds_ && (!array_ || array_->holds()) ? 1 : 0});
  MPI_Send(all.data(), static_cast<int>(all.size() * sizeof(Stamp)), MPI_BYTE, 0, kWindowTag, job_.headers());
}

// Those of the messages, and one more that tells whether all else holds.
std::vector<Stamp> ExtraneousExchange::hear_stamps() const {
  std::vector<Stamp> all(stamps_.size() + 1);
  MPI_Recv(all.data(), static_cast<int>(all.size() * sizeof(Stamp)), MPI_BYTE, 1, kWindowTag, job_.headers(),
           MPI_STATUS_IGNORE);
  return all;
}

void ExtraneousExchange::order(const std::vector<std::size_t>& again) const {
  const auto count = static_cast<std::uint64_t>(again.size());
  MPI_Send(&count, 1, MPI_UINT64_T, 1, kWindowTag, job_.headers());
  MPI_Send(again.data(), static_cast<int>(again.size()), MPI_UINT64_T, 1, kWindowTag, job_.headers());
}

std::vector<std::size_t> ExtraneousExchange::ordered() const {
  std::uint64_t count = 0;
  MPI_Recv(&count, 1, MPI_UINT64_T, 0, kWindowTag, job_.headers(), MPI_STATUS_IGNORE);
  std::vector<std::size_t> again(count);
  MPI_Recv(again.data(), static_cast<int>(count), MPI_UINT64_T, 0, kWindowTag, job_.headers(), MPI_STATUS_IGNORE);
  return again;
}

// What the receiver's clock said of every message. One that was sent before the receiver waited for it is sent again.
std::vector<Stamp> ExtraneousExchange::measure(ExtraneousReport& report) {
  for (const Block& block : schedule(extraneous_)) {
    run(block);
  }
  for (int tries = 0;; ++tries) {
    std::vector<Stamp> received = hear_stamps();
    const std::vector<std::size_t> late =
        extraneous_.of_calls() ? std::vector<std::size_t>{} : late_slots(stamps_, received);
    for (const std::size_t slot : late) {
      ++report.kinds[slot < stamps_.size() / 2 ? 0 : 1].late;
    }
    if (late.empty() || tries == kMostTries) {
      order({});
      for (const std::size_t slot : late) {
        report.kinds[slot < stamps_.size() / 2 ? 0 : 1].flags.insert("late");
      }
      return received;
    }
    order(late);
    patience_ns_ *= 2;
    for (const Block& block : schedule_again(extraneous_, late)) {
      run(block);
    }
  }
}

void ExtraneousExchange::judge(const std::vector<Stamp>& received, ExtraneousReport& report) {
  const std::vector<double> times = message_times(stamps_, received, host_tick_ns(), extraneous_.timing);
  const auto middle = static_cast<std::ptrdiff_t>(times.size() / 2);
  const bool holds = received.back().holds == 1 && holds_ && (!array_ || array_->holds());
  for (const std::ptrdiff_t kind : {0, 1}) {
    OneWayReport& own = report.kinds[static_cast<std::size_t>(kind)];
    own.times.assign(times.begin() + kind * middle, times.begin() + (kind + 1) * middle);
    own.seconds = seconds_[static_cast<std::size_t>(kind)];
    const bool arrived = std::all_of(received.begin() + kind * middle, received.begin() + (kind + 1) * middle,
                                     [](const Stamp& stamp) { return stamp.holds == 1; });
    if (!holds || !arrived) {
      own.flags.insert("validation_failed");
    }
    // A call is timed by one rank's clock alone.
    const bool agree = report.clocks.agrees() && *std::min_element(own.times.begin(), own.times.end()) > 0;
    if (!extraneous_.of_calls() && !agree) {
      own.flags.insert("clocks_differ");
    }
    if (std::accumulate(own.times.begin(), own.times.end(), 0.0) * 1e3 < minimum_sample_ns()) {
      own.flags.insert("too_short");
    }
  }
  if (!overlapped_) {
    report.kinds[1].flags.insert("not_overlapped");
  }
}

// Once more through all sizes, a few messages each, where a rank's processor counts misses: reading the counters takes
// longer than a message, so that those that were timed are not counted.
void ExtraneousExchange::count_all(CountedMisses& misses) {
  count(miss_events(processor_events_here()), misses.misses);
  count(work_events(), misses.work);
}

void ExtraneousExchange::count(const CountedEvents& events, CountedSet& counted) {
  MessageCounter counter(request_.fault == "counters" ? MissCounters::of_time() : MissCounters(events));
  for (const std::size_t which : {0, 1, 2}) {
    counted.reasons[which] = counter.reason(static_cast<MissCounters::Which>(which));
  }
  const int other = 1 - job_.rank();
  int counts[2] = {counter.works() ? 1 : 0, 0};
  MPI_Sendrecv(&counts[0], 1, MPI_INT, other, kWindowTag, &counts[1], 1, MPI_INT, other, kWindowTag, job_.headers(),
               MPI_STATUS_IGNORE);
  if (counts[0] + counts[1] == 0) {
    return;
  }
  const auto timed = std::make_pair(stamps_, seconds_);
  counter_.emplace(std::move(counter));
  std::vector<double> flat;  // not a number: absent
  for (Block block : schedule(extraneous_)) {
    block.messages = std::min(block.messages, kCountedMessages);
    run(block);
    for (const auto& count : counter_->take()) {
      flat.push_back(count.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  }
  counter_.reset();
  std::tie(stamps_, seconds_) = timed;
  std::vector<double> others(flat.size());
  const auto length = static_cast<int>(flat.size());
  MPI_Sendrecv(flat.data(), length, MPI_DOUBLE, other, kWindowTag, others.data(), length, MPI_DOUBLE, other, kWindowTag,
               job_.headers(), MPI_STATUS_IGNORE);
  for (std::size_t i = 0; i < flat.size(); i += 3) {
    for (const int rank : {0, 1}) {
      const auto& own = rank == job_.rank() ? flat : others;
      const auto value = [&](std::size_t at) { return std::isnan(own[at]) ? std::nullopt : std::optional(own[at]); };
      counted.sides[static_cast<std::size_t>(rank)][i / 3 % 2].push_back({value(i), value(i + 1), value(i + 2)});
    }
  }
}

ExtraneousReport ExtraneousExchange::lead(PhaseObserver& observer) {
  ExtraneousReport report;
  begin(observer);
  report.clocks = check_clocks();
  calibrate();
  warm_up();
  const std::vector<Stamp> received = measure(report);
  count_all(report.misses);
  holds_ = bystanders_.stop() && holds_;
  judge(received, report);
  observer.leave();
  return report;
}

void ExtraneousExchange::follow(PhaseObserver& observer) {
  begin(observer);
  check_clocks();
  calibrate();
  warm_up();
  std::vector<Block> blocks = schedule(extraneous_);
  while (!blocks.empty()) {
    for (const Block& block : blocks) {
      run(block);
    }
    tell_stamps();
    blocks = schedule_again(extraneous_, ordered());
  }
  CountedMisses own;
  count_all(own);
  bystanders_.stop();
  observer.leave();
}

std::size_t ExtraneousExchange::bytes_on(int node) const {
  const std::size_t own = array_ && array_->node() == node ? array_->size() : 0;
  return own + bystanders_.bytes_on(node);
}

std::vector<PageReport> ExtraneousExchange::own_pages() const {
  return array_ ? std::vector<PageReport>{array_->verify()} : std::vector<PageReport>{};
}

}  // namespace elbowroom

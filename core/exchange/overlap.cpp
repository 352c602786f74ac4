#include "exchange/overlap.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/clock.hpp"

namespace elbowroom {
namespace {

constexpr int kWarmUps = 5;
constexpr int kFits = 9;            // of the computation to its duration, from a single item
constexpr double kMostGrowth = 16;  // of its items, from one fit to the next
constexpr double kLeastSlice = 1;
constexpr std::uint64_t kIterationStep = 8;  // from one seed to the next
constexpr std::size_t kFields = sizeof(Visit) / sizeof(std::int64_t);
static_assert(sizeof(Visit) == kFields * sizeof(std::int64_t));

// Workers round up to the step of their inner loop: what is left is what counts, in whatever pieces it is run.
std::int64_t run_items(Worker& worker, std::int64_t items) {
  std::int64_t done = 0;
  while (done < items) {
    done += static_cast<std::int64_t>(worker.run(static_cast<std::uint64_t>(items - done)));
  }
  return done;
}

}  // namespace

struct OverlapExchange::Course {
  std::int64_t items = 0;       // of each computing core in an iteration
  std::int64_t slice = 0;       // items between two calls of MPI_Test
  std::int64_t iterations = 0;  // of each kind
};

OverlapExchange::OverlapExchange(const Job& job, ComputingPool& pool, std::function<void(int)> bind)
    : job_(job), pool_(pool), bind_(std::move(bind)) {}

void OverlapExchange::use(const Request& request, const std::vector<CachedWorker*>& workers, char* memory) {
  request_ = request;
  workers_.clear();
  for (CachedWorker* worker : workers) {
    workers_.push_back(worker->job.worker.get());
  }
  operation_.reset();
  operation_ =
      std::make_unique<MpiOperation>(*request.overlap, job_.messages(), static_cast<int>(request.size), memory);
  progress_.reset();
  if (request.overlap->progress == Progress::thread) {
    const int core = request.overlap->progress_cores[static_cast<std::size_t>(job_.rank())];
    progress_ = std::make_unique<BoundThread>(core, bind_);
  }
}

// The threads of a repetition wait for a computation by yielding: their cores are theirs, or shared on purpose. While the
// operation runs alone they rest, as the computing threads of every other plan do.

void OverlapExchange::start_threads(PhaseObserver& observer) {
  rounds_.open(workers_.empty() ? 0 : workers_.size() - 1);
  handed_.store(0);
  observer.join();
  if (workers_.size() > 1) {
    pool_.begin([this, &observer](std::size_t thread) {
      if (thread > 0) {
        compute_beside(thread, observer);
      }
    });
  }
  if (progress_) {
    progress_->post([this, &observer] { make_progress(observer); });
  }
}

void OverlapExchange::stop_threads() {
  rounds_.close();
  handed_.store(-1, std::memory_order_release);
  if (workers_.size() > 1) {
    pool_.finish();
  }
  if (progress_) {
    progress_->wait();
  }
}

void OverlapExchange::compute_beside(std::size_t thread, PhaseObserver& observer) {
  observer.join();
  std::uint64_t round = 0;
  for (std::int64_t share = rounds_.next(round); share >= 0; share = rounds_.next(round)) {
    run_items(*workers_[thread], share);
    rounds_.done();
  }
  observer.leave();
}

void OverlapExchange::make_progress(PhaseObserver& observer) {
  observer.join();
  for (;;) {
    const int handed = handed_.load(std::memory_order_acquire);
    if (handed < 0) {
      break;
    }
    if (handed > 0 && operation_->test()) {
      handed_.store(0, std::memory_order_release);
    }
    sched_yield();
  }
  observer.leave();
}

void OverlapExchange::be_late() const {
  if (job_.rank() != request_.overlap->late_rank) {
    return;
  }
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(request_.overlap->late_seconds * 1e9);
  while (now_ns() < until) {
  }
}

// This thread's share in pieces where it tests, and the others' beside it.
void OverlapExchange::compute(Visit& visit, const Course& course, bool testing) {
  rounds_.begin(course.items);
  for (std::int64_t done = 0; done < course.items;) {
    const std::int64_t piece = testing ? std::min(course.slice, course.items - done) : course.items - done;
    done += run_items(*workers_.front(), piece);
    if (testing && done < course.items) {
      const std::int64_t start = clock_->local();
      testing = !operation_->test();
      visit.tests_ns += clock_->local() - start;
      ++visit.tests;
    }
  }
  while (!rounds_.over()) {
    sched_yield();
  }
  visit.computed = clock_->local();
}

void OverlapExchange::finish() {
  if (!progress_) {
    operation_->wait();
    return;
  }
  while (handed_.load(std::memory_order_acquire) > 0) {
    sched_yield();
  }
}

// The operation, with the computation in it or behind it if there is a course.
void OverlapExchange::operate(Visit& visit, const Course* course) {
  const Overlap& overlap = *request_.overlap;
  be_late();
  visit.enter = clock_->local();
  if (overlap.form == Form::blocking) {
    operation_->call();
  } else {
    operation_->start();
    if (progress_) {
      handed_.store(1, std::memory_order_release);
    }
  }
  visit.posted = clock_->local();
  if (course != nullptr) {
    compute(visit, *course, overlap.progress == Progress::test);
  }
  if (overlap.form != Form::blocking) {
    finish();
  }
  // Another look at the clock would count as time of the call.
  const bool ended = overlap.form == Form::blocking && course == nullptr;
  visit.leave = ended ? visit.posted : clock_->local();
}

Visit OverlapExchange::visit(Kind kind, const Course& course, bool wrong) {
  Visit visit;
  seed_ += kIterationStep;
  if (kind != Kind::computation) {
    operation_->stamp(seed_, wrong);
  }
  if (kind == Kind::message) {
    rounds_.rest();
  } else {
    rounds_.wake();
  }
  MPI_Barrier(job_.headers());
  if (kind == Kind::computation) {
    visit.enter = visit.posted = clock_->local();
    compute(visit, course, false);
    visit.leave = visit.computed;
    return visit;
  }
  operate(visit, kind == Kind::together ? &course : nullptr);
  holds_ = operation_->stamps_hold(seed_) && holds_;
  return visit;
}

// The first operation of a repetition is checked everywhere. Rank 0's times of the next ones decide how long a computation
// is: all ranks get the same.
double OverlapExchange::message_seconds() {
  std::vector<double> times;
  seed_ += kIterationStep;
  operation_->fill(seed_);
  rounds_.rest();
  MPI_Barrier(job_.headers());
  Visit first;
  operate(first, nullptr);
  holds_ = operation_->whole_holds(seed_) && holds_;
  for (int i = 0; i < kWarmUps; ++i) {
    const Visit one = visit(Kind::message, {}, false);
    times.push_back(static_cast<double>(one.leave - one.enter) * 1e-9);
  }
  return *std::min_element(times.begin(), times.end());  // a rank that was held up says nothing of the operation
}

// Items that take as long as is wanted, while all ranks compute; of a point that was measured before, as many as then.
void OverlapExchange::warm_up(Course& course) {
  double wanted = request_.overlap->ratio * message_seconds();
  MPI_Bcast(&wanted, 1, MPI_DOUBLE, 0, job_.headers());
  double each = std::numeric_limits<double>::max();  // s of an item, in the fastest of all computations
  if (!workers_.empty()) {
    const auto known = items_.find(request_.point);
    course.items = known == items_.end() ? 1 : known->second;
    for (int fit = 0; fit < kFits; ++fit) {
      MPI_Bcast(&course.items, 1, MPI_INT64_T, 0, job_.headers());
      const Visit one = visit(Kind::computation, course, false);
      double took = std::max(static_cast<double>(one.leave - one.enter) * 1e-9, 1e-9);
      MPI_Bcast(&took, 1, MPI_DOUBLE, 0, job_.headers());
      each = std::min(each, took / static_cast<double>(course.items));
      if (known != items_.end()) {
        break;
      }
      const double fitting = std::min(wanted / each, static_cast<double>(course.items) * kMostGrowth);
      course.items = std::max<std::int64_t>(1, std::llround(fitting));
    }
    items_[request_.point] = course.items;
  }
  const double computation = each * static_cast<double>(course.items);
  course.slice = std::llround(std::max(request_.overlap->period / each, kLeastSlice));
  const std::int64_t fixed = request_.overlap->iterations;
  course.iterations = fixed > 0 ? fixed : iterations_in(request_.window, std::max(wanted, computation));
}

OverlapExchange::Course OverlapExchange::decide() {
  Course course;
  warm_up(course);
  MPI_Bcast(&course, sizeof course, MPI_BYTE, 0, job_.headers());
  return course;
}

// Before a repetition and after it; times between are of one reference then.
ClockPair OverlapExchange::compare_clocks(const ClockPair* before) {
  const elbow_clock_sync_point point = clock_->synchronise();
  const std::int64_t bound = std::max(point.high - point.offset, point.offset - point.low);
  if (before == nullptr) {
    return {point.local, point.offset, point.local, point.offset, bound};
  }
  return {before->local_before, before->offset_before, point.local, point.offset, std::max(before->bound, bound)};
}

OverlapReport OverlapExchange::run(PhaseObserver& observer) {
  if (!clock_) {
    clock_.emplace(job_.headers(), CommonClock::Use::times);
  }
  holds_ = true;
  const ClockPair before = compare_clocks(nullptr);
  start_threads(observer);
  const Course course = decide();
  const std::vector<Kind> order = iteration_order(course.iterations, !workers_.empty());
  const auto last = std::find(order.rbegin(), order.rend(), Kind::message).base() - order.begin() - 1;
  const bool corrupts = request_.fault == "message" && job_.rank() == 0;
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < order.size(); ++i) {
    visits.push_back(visit(order[i], course, corrupts && static_cast<std::ptrdiff_t>(i) == last));
  }
  stop_threads();
  observer.leave();
  const ClockPair clocks = compare_clocks(&before);
  for (const Worker* worker : workers_) {
    holds_ = worker->validate() && holds_;
  }
  return collect(order, visits, clocks);
}

// Rank 0 hears of all ranks, on the reference's time.
OverlapReport OverlapExchange::collect(const std::vector<Kind>& order, const std::vector<Visit>& own,
                                       const ClockPair& clocks) const {
  std::vector<Visit> common = own;
  for (Visit& visit : common) {
    for (std::int64_t Visit::*time : {&Visit::enter, &Visit::posted, &Visit::computed, &Visit::leave}) {
      visit.*time = clocks.common(visit.*time);
    }
  }
  const auto ranks = static_cast<std::size_t>(job_.size());
  std::vector<Visit> all(job_.rank() == 0 ? own.size() * ranks : 0);
  const int count = static_cast<int>(own.size() * kFields);
  MPI_Gather(common.data(), count, MPI_INT64_T, all.data(), count, MPI_INT64_T, 0, job_.headers());
  std::array<std::int64_t, 2> worst = {clocks.bound, holds_ ? 0 : 1};
  MPI_Allreduce(MPI_IN_PLACE, worst.data(), 2, MPI_INT64_T, MPI_MAX, job_.headers());
  OverlapReport report;
  const std::int64_t bound = worst[0];
  report.clock_bound = 2 * static_cast<double>(bound) * 1e-9;  // of a difference of two ranks' times
  report.holds = worst[1] == 0;
  for (std::size_t i = 0; i < order.size() && job_.rank() == 0; ++i) {
    std::vector<Visit> row;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      row.push_back(all[rank * own.size() + i]);
    }
    const bool waits = request_.overlap->operation == Operation::barrier && order[i] != Kind::computation;
    report.holds = report.holds && (!waits || barrier_holds(row, bound));
    report.visits[static_cast<std::size_t>(order[i])].push_back(std::move(row));
  }
  return report;
}

}  // namespace elbowroom

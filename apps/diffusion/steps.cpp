#include "diffusion/steps.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "common/complete.hpp"
#include "machine/machine.hpp"

namespace elbowroom::diffusion {
namespace {

// Some tens of microseconds: longer than neighbours on their own cores keep each other waiting, shorter than a time slice.
constexpr int kSpins = 1000;

constexpr std::size_t kComputed = 3;   // stamps of a computing thread in each step
constexpr std::size_t kExchanged = 2;  // of a communication thread

std::uint32_t after(std::int64_t step, std::size_t threads) {
  return static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(threads);
}

// From the first thread's stamp `from` to the last one's stamp `to` in step `step` (0: the first that is told).
double lasted(const std::vector<std::vector<std::int64_t>>& stamps, std::size_t each, std::size_t step,
              std::size_t from, std::size_t to) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const auto& thread : stamps) {
    if (!thread.empty()) {
      begin = std::min(begin, thread[step * each + from]);
      end = std::max(end, thread[step * each + to]);
    }
  }
  return static_cast<double>(end - begin) * 1e-9;
}

}  // namespace

Crew::Crew(const std::vector<int>& comp_cores, std::vector<int> comm_cores, bool comp_shared, bool comm_shared,
           const std::function<void(int)>& bind)
    : comm_cores_(std::move(comm_cores)),
      comp_spins_(comp_shared ? 0 : kSpins),
      comm_spins_(comm_shared ? 0 : kSpins),
      computed_at_(comp_cores.size()),
      exchanged_at_(comm_cores_.size()),
      strayed_(comp_cores.size() + comm_cores_.size(), 0) {
  bind(comm_cores_.front());
  for (const int core : comp_cores) {
    computing_.push_back(std::make_unique<BoundThread>(core, bind));
  }
  for (std::size_t i = 1; i < comm_cores_.size(); ++i) {
    communicating_.push_back(std::make_unique<BoundThread>(comm_cores_[i], bind));
  }
}

void Crew::each(const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < computing_.size(); ++i) {
    computing_[i]->post([&task, i] { task(i); });
  }
  for (const auto& thread : computing_) {
    thread->wait();
  }
}

void Crew::look_where(std::size_t thread, int core) {
  const CoreInfo* here = Machine::here().core(sched_getcpu());
  if (here == nullptr || here->number != core) {
    strayed_[thread] = 1;
  }
}

void Crew::look() {
  each([this](std::size_t thread) { look_where(thread, computing_[thread]->core()); });
  for (std::size_t i = 0; i < communicating_.size(); ++i) {
    communicating_[i]->post([this, i] { look_where(computing_.size() + i + 1, comm_cores_[i + 1]); });
    communicating_[i]->wait();
  }
  look_where(computing_.size(), comm_cores_.front());
}

bool Crew::migrated() const { return std::find(strayed_.begin(), strayed_.end(), 1) != strayed_.end(); }

void Crew::begin(const Steps& steps) {
  for (Gate* gate : {&go_, &separated_, &computed_, &exchanging_, &exchanged_}) {
    gate->reset();
  }
  const auto count = static_cast<std::size_t>(steps.steps);
  for (auto& stamps : computed_at_) {
    stamps.assign(computes(steps.variant) ? count * kComputed : 0, 0);
  }
  for (std::size_t i = 0; i < exchanged_at_.size(); ++i) {
    const bool used = communicates(steps.variant) && i < static_cast<std::size_t>(steps.comm_threads);
    exchanged_at_[i].assign(used ? count * kExchanged : 0, 0);
  }
  ended_at_.assign(count + 1, 0);
}

void Crew::compute(std::size_t thread, const Steps& steps, Work& work) {
  for (std::int64_t step = 1; step <= steps.warmup + steps.steps; ++step) {
    go_.wait_for(after(step, 1), comp_spins_);
    const std::int64_t begin = now_ns();
    work.separator(thread, step);
    const std::int64_t middle = now_ns();
    separated_.raise();
    work.interior(thread, step);
    const std::int64_t end = now_ns();
    computed_.raise();
    if (step > steps.warmup) {
      const auto at = static_cast<std::size_t>(step - steps.warmup - 1) * kComputed;
      computed_at_[thread][at] = begin;
      computed_at_[thread][at + 1] = middle;
      computed_at_[thread][at + 2] = end;
    }
  }
  look_where(thread, computing_[thread]->core());
}

void Crew::communicate(int thread, std::int64_t step, const Steps& steps, double* values, Halo& halo) {
  const std::int64_t begin = now_ns();
  halo.exchange(values, thread, steps.comm_threads);
  const std::int64_t end = now_ns();
  if (step > steps.warmup) {
    auto& stamps = exchanged_at_[static_cast<std::size_t>(thread)];
    const auto at = static_cast<std::size_t>(step - steps.warmup - 1) * kExchanged;
    stamps[at] = begin;
    stamps[at + 1] = end;
  }
}

// A communication thread that is not the first.
void Crew::assist(int thread, const Steps& steps, const Field& field, Halo& halo) {
  for (std::int64_t step = 1; step <= steps.warmup + steps.steps; ++step) {
    exchanging_.wait_for(after(step, 1), comm_spins_);
    communicate(thread, step, steps, field(step), halo);
    exchanged_.raise();
  }
  const auto own = static_cast<std::size_t>(thread);
  look_where(computing_.size() + own, comm_cores_[own]);
}

void Crew::lead(const Steps& steps, const Field& field, Halo& halo, MPI_Comm comm) {
  const bool computing = computes(steps.variant);
  const Gate& ready = steps.variant == Variant::overlap ? separated_ : computed_;
  for (std::int64_t step = 1; step <= steps.warmup + steps.steps; ++step) {
    if (computing) {
      go_.raise();
    }
    if (communicates(steps.variant)) {
      if (computing) {
        ready.wait_for(after(step, computing_.size()), comm_spins_);
      }
      exchanging_.raise();
      communicate(0, step, steps, field(step), halo);
      exchanged_.wait_for(after(step, static_cast<std::size_t>(steps.comm_threads) - 1), comm_spins_);
    }
    if (computing) {
      computed_.wait_for(after(step, computing_.size()), comm_spins_);
    }
    program::barrier(comm, halo.waiting());
    if (step >= steps.warmup) {
      ended_at_[static_cast<std::size_t>(step - steps.warmup)] = now_ns();
    }
  }
  look_where(computing_.size(), comm_cores_.front());
}

StepTimes Crew::run(const Steps& steps, Work& work, const Field& field, Halo& halo, MPI_Comm comm) {
  begin(steps);
  if (computes(steps.variant)) {
    for (std::size_t i = 0; i < computing_.size(); ++i) {
      computing_[i]->post([&, i] { compute(i, steps, work); });
    }
  }
  const auto helpers = static_cast<std::size_t>(communicates(steps.variant) ? steps.comm_threads - 1 : 0);
  for (std::size_t i = 0; i < helpers; ++i) {
    communicating_[i]->post([&, i] { assist(static_cast<int>(i) + 1, steps, field, halo); });
  }
  program::barrier(comm, halo.waiting());
  ended_at_.front() = now_ns();
  lead(steps, field, halo, comm);
  if (computes(steps.variant)) {
    for (const auto& thread : computing_) {
      thread->wait();
    }
  }
  for (std::size_t i = 0; i < helpers; ++i) {
    communicating_[i]->wait();
  }
  return times(steps);
}

StepTimes Crew::times(const Steps& steps) const {
  StepTimes times;
  for (std::size_t i = 0; i < static_cast<std::size_t>(steps.steps); ++i) {
    times.step.push_back(static_cast<double>(ended_at_[i + 1] - ended_at_[i]) * 1e-9);
    if (computes(steps.variant)) {
      times.separator.push_back(lasted(computed_at_, kComputed, i, 0, 1));
      times.interior.push_back(lasted(computed_at_, kComputed, i, 1, 2));
    }
    if (communicates(steps.variant)) {
      times.exchange.push_back(lasted(exchanged_at_, kExchanged, i, 0, 1));
    }
  }
  times.all = static_cast<double>(ended_at_.back() - ended_at_.front()) * 1e-9;
  return times;
}

}  // namespace elbowroom::diffusion

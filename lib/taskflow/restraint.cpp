#include "restraint.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace elbowroom::taskflow {
namespace {

constexpr std::uint32_t kLever = 2;
constexpr std::uint64_t kPrefer = 2;  // memory-bound tasks start where there are no others
constexpr std::uint64_t kHold = 3;    // they wait
constexpr std::uint64_t kThere = std::uint64_t{1} << 32;
constexpr std::uint64_t kLongestWait = 100'000'000;  // ns: then a task starts, whatever moves
constexpr std::size_t kMostKept = 4096;

std::string setting_of(const char* name) {
  const char* const given = std::getenv(name);
  return given == nullptr ? "" : given;
}

elbow_guard* open_board() { return setting_of("ELBOW_GUARD").empty() ? nullptr : elbow_guard_open(nullptr); }

}  // namespace

Restraint::Restraint() : board_(open_board(), elbow_guard_close) {
  if (board_) {
    codelets_ = std::make_unique<guard::Codelets>(setting_of("ELBOW_GUARD_MEMORY_BOUND"),
                                                  setting_of("ELBOW_GUARD_COMPUTE_BOUND"));
    elbow_guard_set(board_.get(), guard::place_of_seen(kLever), kThere);
  }
}

void Restraint::look() {
  if (!board_) {
    return;
  }
  const std::uint64_t now = elbow_guard_setting(board_.get(), kLever);
  if (now != setting_) {
    setting_ = now;
    elbow_guard_set(board_.get(), guard::place_of_seen(kLever), kThere | now);
  }
}

bool Restraint::keep(Task& task) {
  if (!board_ || setting_ == 0 || kept_.size() >= kMostKept) {
    return false;
  }
  const bool waits = codelet_of(task).bound() == guard::Bound::kMemory && moves();
  if (waits && (setting_ == kPrefer || setting_ == kHold)) {
    const auto lower = [&](const Kept& kept) { return kept.task->priority < task.priority; };
    kept_.insert(std::find_if(kept_.begin(), kept_.end(), lower), {&task, elbow_guard_now()});
    return true;
  }
  return false;
}

Task* Restraint::release(bool alone) {
  if (kept_.empty()) {
    return nullptr;
  }
  const bool may = (setting_ != kHold && alone) || (setting_ != kPrefer && setting_ != kHold) || !moves();
  const std::uint64_t now = elbow_guard_now();
  const auto waited_enough = [&](const Kept& kept) { return may || now - kept.since > kLongestWait; };
  const auto kept = std::find_if(kept_.begin(), kept_.end(), waited_enough);
  if (kept == kept_.end()) {
    return nullptr;
  }
  Task* const task = kept->task;
  elbow_guard_held(board_.get(), now - kept->since);
  kept_.erase(kept);
  return task;
}

void Restraint::run(Task& task, void* const* buffers) {
  guard::Codelet* const codelet = board_ ? &codelet_of(task) : nullptr;
  if (codelet == nullptr || !codelet->wanted()) {
    task.kernel(buffers, task.argument.data());
    return;
  }
  const bool beside = moves();
  const std::uint64_t begin = guard::processor_time_now();
  task.kernel(buffers, task.argument.data());
  const std::uint64_t ns = guard::processor_time_now() - begin;
  if (beside == moves()) {
    codelet->add(static_cast<double>(ns) * 1e-9, beside);
  }
}

guard::Codelet& Restraint::codelet_of(const Task& task) {
  // Tasks of one kind often follow each other.
  thread_local const void* last = nullptr;
  thread_local const char* name = "";
  const auto* const kernel = reinterpret_cast<const void*>(task.kernel);
  if (kernel != last) {
    Dl_info about{};
    name = dladdr(kernel, &about) != 0 && about.dli_sname != nullptr ? about.dli_sname : "";
    last = kernel;
  }
  return codelets_->find(kernel, name, 0);
}

}  // namespace elbowroom::taskflow

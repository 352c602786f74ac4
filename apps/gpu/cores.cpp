#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "gpu/library.hpp"
#include "kernels/kernel.hpp"
#include "load_kinds.hpp"
#include "machine/machine.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr double kChunkNs = 1e6;

struct Progress {
  std::uint64_t items = 0;
  std::int64_t at = 0;  // ns, end of the last chunk
};

// What a core computes with: touched in the first phase, and kept for those that follow.
struct Memory {
  std::optional<Arena> arena;
  std::unique_ptr<Worker> worker;
};

// A computing thread. It computes in chunks of about a millisecond and notes items and time after each.
class Core {
 public:
  Core(const Work& work, int number, Memory& memory)
      : work_(work), number_(number), memory_(memory), thread_([this] { run(); }) {}
  ~Core() { stop(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

  bool ready() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw gpu::Unavailable(failure_, "choose other cores, or less memory");
    return progress_.items > 0;
  }

  Progress progress() {
    const std::lock_guard lock(mutex_);
    return progress_;
  }

  bool valid() const { return valid_; }          // after stop()
  bool misplaced() const { return misplaced_; }  // after stop()

 private:
  const Work& work_;
  int number_;
  Memory& memory_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  Progress progress_;
  std::string failure_;
  bool valid_ = true;
  bool misplaced_ = false;
  std::thread thread_;

  void run() {
    try {
      compute();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      failure_ = error.what();
    }
  }

  void compute() {
    const Machine& machine = Machine::here();
    machine.bind_this_thread(number_);
    if (!memory_.worker) prepare(machine);
    const auto& [arena, worker] = memory_;
    std::uint64_t items = 1;
    std::int64_t last = now_ns();
    while (!stopped_) {
      const std::uint64_t done = worker->run(items);
      const std::int64_t now = now_ns();
      const double wanted =
          static_cast<double>(done) * kChunkNs / static_cast<double>(std::max<std::int64_t>(now - last, 1));
      items = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, 1e9));
      last = now;
      const std::lock_guard lock(mutex_);
      progress_.items += done;
      progress_.at = now;
    }
    valid_ = worker->validate();
    if (!arena) return;
    const PageReport pages = arena->verify(work_.bytes);
    misplaced_ = pages.unknown.empty() && pages.share < 1;
  }

  void prepare(const Machine& machine) {
    const CoreInfo* const core = machine.core(number_);
    const int node = work_.node >= 0 ? work_.node : std::max(core == nullptr ? 0 : core->node, 0);
    if (find_kernel(work_.kernel)->arrays > 0) memory_.arena.emplace(work_.bytes, node);
    void* const data = memory_.arena ? memory_.arena->data() : nullptr;
    auto worker = make_worker(work_.kernel, data, memory_.arena ? work_.bytes : 0, work_.cursor);
    worker->first_touch();
    memory_.worker = std::move(worker);
  }
};

class Cores final : public Load {
 public:
  explicit Cores(const Work& work) : work_(work), info_(*find_kernel(work.kernel)), memories_(work.cores.size()) {
    for (const int number : work.cores) {
      const CoreInfo* const core = Machine::here().core(number);
      if (core == nullptr || !core->allowed) {
        throw gpu::Unavailable("core " + std::to_string(number) + " does not exist or may not be used",
                               "see `elbowroom doctor`");
      }
    }
  }

  const char* unit() const override { return info_.rate_unit.data(); }

  void start() override {
    cores_.clear();
    for (std::size_t i = 0; i < work_.cores.size(); ++i) {
      cores_.push_back(std::make_unique<Core>(work_, work_.cores[i], memories_[i]));
    }
  }

  bool running() override {
    return std::all_of(cores_.begin(), cores_.end(), [](const auto& core) { return core->ready(); });
  }

  // A chunk on a core that others use, too, may last longer than a phase.
  double measured_s() const override {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < cores_.size() && i < begun_.size(); ++i) {
      least = std::min(least, 1e-9 * static_cast<double>(cores_[i]->progress().at - begun_[i].at));
    }
    return least;
  }

  void begin() override { begun_ = progress(); }
  void end() override { ended_ = progress(); }

  void stop() override {
    for (const auto& core : cores_) core->stop();
    for (const auto& core : cores_) {
      valid_ = valid_ && core->valid();
      misplaced_ = misplaced_ || core->misplaced();
    }
    cores_.clear();
  }

  Sample sample() const override {
    Sample sample;
    if (begun_.size() != ended_.size()) return sample;
    double rate = 0;
    for (std::size_t i = 0; i < begun_.size(); ++i) {
      if (ended_[i].at <= begun_[i].at) return sample;
      const auto items = static_cast<double>(ended_[i].items - begun_[i].items);
      rate += 1e9 * items / static_cast<double>(ended_[i].at - begun_[i].at);
      ++sample.units;
    }
    sample.rate = 1e-6 * rate * costs();
    return sample;
  }

  std::vector<Flag> flags() const override {
    if (!misplaced_) return {};
    return {{"wrong_node", "not all pages of computing cores are on their NUMA node"}};
  }

  std::string check() override { return valid_ ? "" : "a computing kernel computed wrong values"; }

 private:
  const Work& work_;
  const KernelInfo& info_;
  std::vector<Memory> memories_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<Progress> begun_;
  std::vector<Progress> ended_;
  bool valid_ = true;
  bool misplaced_ = false;

  // Of an item, in what the unit counts in millions.
  double costs() const {
    if (info_.rate_unit == "MB/s") return info_.bytes_read + info_.bytes_written;
    return info_.rate_unit == "Mflop/s" ? info_.flops : 1;
  }

  std::vector<Progress> progress() const {
    std::vector<Progress> all;
    for (const auto& core : cores_) all.push_back(core->progress());
    return all;
  }
};

}  // namespace

std::unique_ptr<Load> make_cores(const Work& work) { return std::make_unique<Cores>(work); }

}  // namespace elbowroom::gpu_bench

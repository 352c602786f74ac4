#include "pmpi/guard/steps.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "pmpi/guard/progress.hpp"
#include "pmpi/guard/step_file.hpp"
#include "pmpi/guard/threads.hpp"

namespace elbowroom::pmpi {
namespace {

constexpr std::uint32_t kPlaceboTable = 1;  // writes what it reads
constexpr std::uint32_t kFirstTable = 2;
constexpr std::uint32_t kThreadsLever = 0;

// Numbers of keys in the order of their first appearance, which is the same in all ranks that run the same code.
template <std::uint32_t kMost>
class Numbers {
 public:
  // kMost - 1 for all that have no place.
  std::uint32_t find(std::uint64_t key) {
    std::uint32_t at = static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15u) >> 40) % kSlots;
    for (std::uint32_t i = 0; i < kSlots; ++i, at = (at + 1) % kSlots) {
      if (slots_[at].key == key) {
        return slots_[at].number;
      }
      if (slots_[at].key == 0) {
        if (count_ + 1 >= kMost) {
          break;
        }
        slots_[at] = {key, count_};
        return count_++;
      }
    }
    return kMost - 1;
  }
  std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t kSlots = 2 * kMost;
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::array<Slot, kSlots> slots_{};
  std::uint32_t count_ = 0;
};

constexpr std::uint32_t kSites = 4096;
constexpr std::uint32_t kMarkSite = kSites;

struct Steps {
  StepFile file{};
  elbow_guard* board = nullptr;
  Numbers<kSites> sites;
  Numbers<kPhases> phases;
  std::array<std::uint8_t, kSites + 1> times{};  // how often each site was passed in this step
  StepRecord record{};
  bool has_step = false;
  std::uint64_t next_step = 0;
  std::uint32_t arm = 0;
  std::uint32_t table = 0;
  std::uint32_t anchors = 0;
  std::uint32_t phase = 0;
  std::uint64_t phase_begin = 0;
  // The call that this thread is in.
  std::uint32_t site = 0;
  std::uint64_t call_begin = 0;
  bool has_threads = false;
  int own_threads = 0;  // as the program has it
  int set = 0;          // what was set last; 0: nothing
};

Steps* steps = nullptr;
constinit thread_local bool is_here __attribute__((tls_model("initial-exec"))) = false;

void end_phase(std::uint64_t now) {
  StepRecord& record = steps->record;
  record.seconds[steps->phase] += static_cast<float>(static_cast<double>(now - steps->phase_begin) * 1e-9);
  if (steps->has_threads) {
    const SeenRegions seen = take_seen_regions();
    record.got[steps->phase] = static_cast<std::uint8_t>(std::clamp<int>(seen.threads, record.got[steps->phase], 255));
    steps->file.header->fixed.fetch_add(static_cast<std::uint32_t>(seen.fixed), std::memory_order_relaxed);
  }
}

// What the program has: where it is not what was set last, the program set it.
void read_own_threads() {
  const int now = threads_now();
  if (steps->set == 0 || now != steps->set) {
    if (steps->set != 0) {
      steps->file.header->fixed.fetch_add(1, std::memory_order_relaxed);
    }
    steps->own_threads = now;
    steps->set = 0;
    steps->file.header->threads.store(static_cast<std::uint32_t>(now), std::memory_order_relaxed);
  }
}

void act_on_threads() {
  if (!steps->has_threads || in_parallel()) {
    return;
  }
  read_own_threads();
  if (steps->table == kPlaceboTable) {
    set_threads(steps->own_threads);  // not what is in effect: an arm before may have set that
    steps->set = 0;
    return;
  }
  int wanted = 0;
  if (steps->table >= kFirstTable && steps->table < kTables) {
    wanted = steps->file.header->tables[steps->table][steps->phase].load(std::memory_order_relaxed);
  }
  steps->record.asked[steps->phase] = static_cast<std::uint8_t>(std::min(wanted, 255));
  if (wanted == 0 && steps->set == 0) {
    return;
  }
  const int count = wanted == 0 ? steps->own_threads : wanted;
  if (count != threads_now()) {
    set_threads(count);
  }
  steps->set = wanted == 0 ? 0 : count;
}

void begin_phase(std::uint32_t site, std::uint64_t now) {
  steps->phase_begin = now;
  if (!steps->has_step) {
    steps->phase = kPhases - 1;
    return;
  }
  std::uint8_t& times = steps->times[site];
  times = static_cast<std::uint8_t>(std::min(times + 1, 255));
  steps->phase = steps->phases.find((static_cast<std::uint64_t>(site) << 8) + times + 1);
  steps->file.header->phases.store(steps->phases.count(), std::memory_order_relaxed);
  act_on_threads();
}

void take_arm() {
  StepHeader& header = *steps->file.header;
  const bool planned = steps->next_step < header.planned.load(std::memory_order_acquire);
  const std::uint32_t arm = planned ? header.plan[steps->next_step % kPlan].load(std::memory_order_relaxed)
                                    : header.rest.load(std::memory_order_relaxed);
  steps->table =
      static_cast<std::uint32_t>(header.settings[arm % kArms][kThreadsLever].load(std::memory_order_relaxed));
  if (header.leads.load(std::memory_order_relaxed) != 0) {
    for (std::uint32_t lever = 0; lever < ELBOW_GUARD_SETTINGS; ++lever) {
      const std::uint64_t value = header.settings[arm % kArms][lever].load(std::memory_order_relaxed);
      if (elbow_guard_setting(steps->board, lever) != value) {
        elbow_guard_set(steps->board, lever, value);
      }
    }
  }
  steps->arm = arm;
}

void begin_step(std::uint64_t now) {
  StepHeader& header = *steps->file.header;
  if (steps->has_step) {
    steps->record.end = now;
    const std::uint64_t count = header.steps.load(std::memory_order_relaxed);
    steps->file.steps[count % kKeptSteps] = steps->record;
    header.steps.store(count + 1, std::memory_order_release);
  }
  // A library may bring OpenMP later; the look-up takes as long as several calls, so it is made ever more seldom.
  if (!steps->has_threads && (steps->next_step & (steps->next_step + 1)) == 0) {
    steps->has_threads = find_threads();
  }
  if (steps->has_threads && steps->own_threads == 0) {
    read_own_threads();
  }
  take_arm();
  steps->record = {};
  steps->record.step = steps->next_step++;
  steps->record.begin = now;
  steps->record.arm = steps->arm;
  steps->has_step = true;
  steps->times.fill(0);
}

bool at_anchor() {
  const StepHeader& header = *steps->file.header;
  return header.recognised.load(std::memory_order_acquire) == kBySite &&
         header.site.load(std::memory_order_relaxed) == steps->site &&
         ++steps->anchors % std::max(header.every.load(std::memory_order_relaxed), 1u) == 0;
}

}  // namespace

bool start_steps(const std::string& path, std::int32_t rank, elbow_guard* board, std::string& why) {
  StepFile file{};
  if (!make_step_file(path, rank, file, why)) {
    return false;
  }
  steps = new Steps;  // as long as the process: calls may come until its end
  steps->file = file;
  steps->board = board;
  steps->phase_begin = elbow_guard_now();
  is_here = true;
  return true;
}

void stop_steps() {
  if (is_here && steps != nullptr) {
    steps->file.header->process = 0;
  }
  steps = nullptr;
}

void enter_call(int call, const void* caller) {
  if (!is_here || steps == nullptr) {
    return;
  }
  const std::uint64_t now = elbow_guard_now();
  // Not the address itself: it differs from process to process, and so would the order of the table.
  steps->site =
      steps->sites.find((reinterpret_cast<std::uintptr_t>(caller) << 10) + static_cast<std::uint64_t>(call) + 1);
  steps->call_begin = now;
  end_phase(now);
}

void leave_call(int) {
  if (!is_here || steps == nullptr || steps->call_begin == 0) {
    return;
  }
  const std::uint64_t now = elbow_guard_now();
  StepHeader& header = *steps->file.header;
  if (header.learns.load(std::memory_order_relaxed) != 0) {
    const std::uint64_t count = header.calls.load(std::memory_order_relaxed);
    steps->file.calls[count % kKeptCalls] = {steps->site, 0, steps->call_begin, now};
    header.calls.store(count + 1, std::memory_order_release);
  }
  if (at_anchor()) {
    begin_step(now);
  }
  steps->call_begin = 0;
  follow_progress_setting(steps->board);
  begin_phase(steps->site, now);
}

void mark_step() {
  if (!is_here || steps == nullptr) {
    return;
  }
  std::uint32_t not_yet = kNotYet;
  std::atomic<std::uint32_t>& recognised = steps->file.header->recognised;
  if (recognised.compare_exchange_strong(not_yet, kByMarks) || not_yet == kByMarks) {
    const std::uint64_t now = elbow_guard_now();
    end_phase(now);
    begin_step(now);
    follow_progress_setting(steps->board);
    begin_phase(kMarkSite, now);
  }
}

}  // namespace elbowroom::pmpi

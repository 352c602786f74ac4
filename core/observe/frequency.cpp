#include "observe/frequency.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>

#include "machine/machine.hpp"

namespace elbowroom {
namespace {

std::string folder_of(int core, const SystemRoots& roots) {
  return roots.sys + "/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq";
}

}  // namespace

std::optional<std::int64_t> frequency_khz(int core, const SystemRoots& roots) {
  const auto value = read_number(folder_of(core, roots) + "/scaling_cur_freq");
  return value && *value > 0 ? value : std::nullopt;
}

std::map<std::string, std::int64_t> uncore_khz(const SystemRoots& roots) {
  const std::string folder = roots.sys + "/devices/system/cpu/intel_uncore_frequency";
  std::map<std::string, std::int64_t> values;
  for (const std::string& part : list_directory(folder)) {
    std::string path = folder;
    path += '/';
    path += part;
    path += "/current_freq_khz";
    if (const auto value = read_number(path); value && *value > 0) {
      values[part] = *value;
    }
  }
  return values;
}

int sampling_core(const std::vector<CoreInfo>& cores, const std::vector<int>& busy) {
  const auto has_thread = [&](const CoreInfo& core) {
    return std::any_of(busy.begin(), busy.end(), [&](int number) {
      return std::find(core.pus.begin(), core.pus.end(), number) != core.pus.end();
    });
  };
  std::set<int> sockets;
  for (const CoreInfo& core : cores) {
    if (has_thread(core)) {
      sockets.insert(core.package);
    }
  }
  int spare = -1;
  for (const CoreInfo& core : cores) {
    if (!core.allowed || has_thread(core)) {
      continue;
    }
    if (!sockets.contains(core.package)) {
      return core.number;
    }
    spare = spare < 0 ? core.number : spare;
  }
  return spare;
}

std::string frequency_refusal(const std::vector<int>& cores, const SystemRoots& roots) {
  if (cores.empty()) {
    return "no core to look at";
  }
  if (frequency_khz(cores.front(), roots)) {
    return "";
  }
  return list_directory(folder_of(cores.front(), roots)).empty() ? "no cpufreq" : "cpufreq does not report frequencies";
}

FrequencySampler::FrequencySampler(std::vector<int> cores, std::int64_t interval_ns, int bind_to, SystemRoots roots)
    : cores_(std::move(cores)), interval_ns_(interval_ns), roots_(std::move(roots)) {
  thread_ = std::thread([this, bind_to] { run(bind_to); });
}

FrequencySampler::~FrequencySampler() { stop(); }

void FrequencySampler::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void FrequencySampler::run(int bind_to) {
  if (bind_to >= 0) {
    try {
      Machine::here().bind_this_thread(bind_to);
    } catch (const std::runtime_error&) {
      // Sampling from anywhere is better than no trace; nothing measured depends on where it runs.
    }
  }
  auto next = std::chrono::steady_clock::now();
  do {  // once at least, however short the phase
    for (const int core : cores_) {
      if (const auto khz = frequency_khz(core, roots_)) {
        samples_[core].push_back(*khz);
      }
    }
    for (const auto& [part, khz] : uncore_khz(roots_)) {
      uncore_[part].push_back(khz);
    }
    next += std::chrono::nanoseconds(interval_ns_);
    if (!stopping_) {
      std::this_thread::sleep_until(next);
    }
  } while (!stopping_);
}

std::optional<std::int64_t> median_khz(std::vector<std::int64_t> samples) {
  if (samples.empty()) {
    return std::nullopt;
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace elbowroom

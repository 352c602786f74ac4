// Frequencies of cores from cpufreq, once or traced by a sampling thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/system_files.hpp"

namespace elbowroom {

// Frequency of a core now in kHz; nothing where cpufreq does not tell.
std::optional<std::int64_t> frequency_khz(int core, const SystemRoots& roots = {});

// Why no frequency can be read; empty when the first of the cores has one.
std::string frequency_refusal(const std::vector<int>& cores, const SystemRoots& roots = {});

// Samples the frequency of some cores until stopped.
class FrequencySampler {
 public:
  // `bind_to` is the core of the sampling thread; < 0 leaves it to the scheduler.
  FrequencySampler(std::vector<int> cores, std::int64_t interval_ns, int bind_to, SystemRoots roots = {});
  ~FrequencySampler();
  FrequencySampler(const FrequencySampler&) = delete;
  FrequencySampler& operator=(const FrequencySampler&) = delete;

  void stop();
  std::int64_t interval_ns() const { return interval_ns_; }
  // kHz per core, one value per interval; complete after stop().
  const std::map<int, std::vector<std::int64_t>>& samples() const { return samples_; }

 private:
  void run(int bind_to);

  std::vector<int> cores_;
  std::int64_t interval_ns_;
  SystemRoots roots_;
  std::map<int, std::vector<std::int64_t>> samples_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Middle value of the samples; nothing when there is none.
std::optional<std::int64_t> median_khz(std::vector<std::int64_t> samples);

}  // namespace elbowroom

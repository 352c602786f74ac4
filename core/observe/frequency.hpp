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
#include "machine/machine.hpp"

namespace elbowroom {

// Frequency of a core now in kHz; nothing where cpufreq does not tell.
std::optional<std::int64_t> frequency_khz(int core, const SystemRoots& roots = {});

// Frequency of each part of the uncore now in kHz, by the name of its folder; empty where the kernel does not tell.
std::map<std::string, std::int64_t> uncore_khz(const SystemRoots& roots = {});

// Why no frequency can be read; empty when the first of the cores has one.
std::string frequency_refusal(const std::vector<int>& cores, const SystemRoots& roots = {});

// Where to sample from, so that nothing measured is disturbed: an allowed core without a thread, on a socket without one
// if there is such a core; -1 if every allowed core has a thread. `busy` are the cores with threads.
int sampling_core(const std::vector<CoreInfo>& cores, const std::vector<int>& busy);

// Samples the frequency of some cores and of the uncore until stopped.
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
  const std::map<std::string, std::vector<std::int64_t>>& uncore() const { return uncore_; }  // by part

 private:
  void run(int bind_to);

  std::vector<int> cores_;
  std::int64_t interval_ns_;
  SystemRoots roots_;
  std::map<int, std::vector<std::int64_t>> samples_;
  std::map<std::string, std::vector<std::int64_t>> uncore_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Middle value of the samples; nothing when there is none.
std::optional<std::int64_t> median_khz(std::vector<std::int64_t> samples);

}  // namespace elbowroom

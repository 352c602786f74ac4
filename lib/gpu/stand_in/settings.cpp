#include "gpu/stand_in/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace elbowroom::stand_in {
namespace {

using nlohmann::json;

Interference read_interference(const json& object) {
  return {object.at("victim"), object.at("mover"), object.at("kept"), object.value("held", 0)};
}

void read_interferences(Settings& settings, const json& list) {
  for (const json& object : list) settings.interference.push_back(read_interference(object));
}

void read_numbers(std::map<std::string, double>& numbers, const json& object) {
  for (const auto& [name, value] : object.items()) numbers[name] = value;
}

using Reader = std::function<void(Settings&, const json&)>;

template <class Member>
Reader into(Member Settings::*member) {
  return [member](Settings& settings, const json& value) { settings.*member = value.get<Member>(); };
}

const std::map<std::string, Reader>& readers() {
  static const std::map<std::string, Reader> kReaders = {
      {"sms", into(&Settings::sms)},
      {"capability", into(&Settings::capability)},
      {"driver_version", into(&Settings::driver_version)},
      {"devices", into(&Settings::devices)},
      {"memory", into(&Settings::memory)},
      {"virtual_clock", into(&Settings::virtual_clock)},
      {"query_s", into(&Settings::query_s)},
      {"submit_s", into(&Settings::submit_s)},
      {"rates", [](Settings& settings, const json& value) { read_numbers(settings.rates, value); }},
      {"kernels", [](Settings& settings, const json& value) { read_numbers(settings.kernels, value); }},
      {"interference", read_interferences},
      {"host_flag_kept", into(&Settings::host_flag_kept)},
      {"zeros_gain", into(&Settings::zeros_gain)},
      {"lazy_loading", into(&Settings::lazy_loading)},
      {"connections", into(&Settings::connections)},
      {"rise_s", into(&Settings::rise_s)},
      {"copy_lag_s", into(&Settings::copy_lag_s)},
      {"name", into(&Settings::name)},
      {"clock_khz", into(&Settings::clock_khz)},
      {"memory_khz", into(&Settings::memory_khz)},
      {"bus_bits", into(&Settings::bus_bits)},
      {"power_w", into(&Settings::power_w)},
      {"throttle", into(&Settings::throttle)},
      {"busy", into(&Settings::busy)},
      {"pinned_refused", into(&Settings::pinned_refused)},
      {"lost_after", into(&Settings::lost_after)},
      {"batch_on_sms", into(&Settings::batch_on_sms)},
      {"holders_share", into(&Settings::holders_share)},
      {"no_compiler", into(&Settings::no_compiler)},
      {"processes", into(&Settings::processes)},
      {"link_width", into(&Settings::link_width)},
      {"host_pids", into(&Settings::host_pids)},
      {"stop_ignored", into(&Settings::stop_ignored)},
      {"carveout_ignored", into(&Settings::carveout_ignored)},
      {"blocks_per_sm", into(&Settings::blocks_per_sm)},
      {"gemm_wrong", into(&Settings::gemm_wrong)},
  };
  return kReaders;
}

}  // namespace

Settings parse_settings(const std::string& text) {
  Settings settings;
  const json document = json::parse(text);
  for (const auto& [key, value] : document.items()) {
    const auto reader = readers().find(key);
    if (reader == readers().end()) throw std::runtime_error("the stand-in has no setting " + key);
    reader->second(settings, value);
  }
  return settings;
}

Settings settings_from_environment() {
  const char* const path = std::getenv("ELBOW_STAND_IN");
  Settings settings;
  if (path != nullptr && *path != '\0') {
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    settings = parse_settings(text.str());
  }
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (connections != nullptr) settings.connections = std::clamp(std::atoi(connections), 1, 32);
  return settings;
}

}  // namespace elbowroom::stand_in

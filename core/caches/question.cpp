#include "caches/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestMessage =
    65536;  // above it libraries cut messages, or have one side read the other's memory

json model_record(const HierarchyShape& shape, const std::vector<int>& cores, const Footprint& footprint) {
  json assumptions = {"least recently used lines are replaced, no level holds or excludes another's on purpose",
                      "sets by virtual addresses, of arrays and buffers that begin on pages of their own",
                      "nothing is prefetched"};
  for (const std::string& assumption : shape.assumptions) {
    assumptions.push_back(assumption);
  }
  return {{"hierarchy", hierarchy_record(shape, cores)},
          {"footprint_bytes", {{"sender", footprint.sender}, {"receiver", footprint.receiver}}},
          {"in_barrier_bytes", {{"sender", footprint.sender_in_barrier}, {"receiver", footprint.receiver_in_barrier}}},
          {"assumptions", assumptions}};
}

// The same for every size: nobody touches anything.
json without(const HierarchyShape& shape, const ExchangeMemory& memory, Touching touching, std::uint64_t count) {
  touching.sender = touching.receiver = touching.bystanders = false;
  json record = modelled_misses(shape, exchange_pattern(memory, touching), {0, 0, 1});
  for (const char* side : {"sender", "receiver"}) {
    for (auto& [level, misses] : record[side].items()) {
      const json once = misses.front();
      misses = json::array_t(count, once);
    }
  }
  return record;
}

}  // namespace

nlohmann::json hierarchy_record(const HierarchyShape& shape, const std::vector<int>& cores) {
  nlohmann::json caches = nlohmann::json::array();
  for (std::size_t index = 0; index < shape.caches.size(); ++index) {
    const CacheShape& cache = shape.caches[index];
    std::vector<int> users;
    for (std::size_t core = 0; core < shape.paths.size(); ++core) {
      if (std::count(shape.paths[core].begin(), shape.paths[core].end(), index) > 0) {
        users.push_back(cores[core]);
      }
    }
    caches.push_back({{"level", fmt::format("L{}", cache.level)},
                      {"bytes", cache.bytes},
                      {"ways", cache.ways},
                      {"sets", cache.sets},
                      {"cores", users}});
  }
  return {{"line", shape.line}, {"caches", caches}};
}

nlohmann::json modelled_misses(const HierarchyShape& shape, const AccessPattern& pattern, const SizeWindow& sizes) {
  SteadyMisses model(shape, pattern);
  nlohmann::json record = {{"source", "modelled"}};
  const auto append = [&](const char* side, std::size_t core, const std::vector<std::uint64_t>& misses) {
    for (std::size_t place = 0; place < misses.size(); ++place) {
      const int level = shape.caches[shape.paths[core][place]].level;
      record[side][fmt::format("L{}", level)].push_back(misses[place]);
    }
  };
  for (std::uint64_t i = 0; i < sizes.count; ++i) {
    const MessageMisses misses = model.at(sizes.first + i * sizes.step);
    append("sender", kSenderCore, misses.sender);
    append("receiver", kReceiverCore, misses.receiver);
  }
  return record;
}

HierarchyShape shape_of_cores(const std::vector<int>& cores) {
  const auto& machine = Machine::here();
  std::vector<std::vector<CacheInfo>> result;
  for (const int core : cores) {
    if (machine.core(core) == nullptr) {
      throw std::invalid_argument(fmt::format("core {} does not exist", core));
    }
    result.push_back(machine.caches(core));
    if (result.back().empty()) {
      throw std::invalid_argument(fmt::format("hwloc reports no data cache of core {}", core));
    }
  }
  return shape_of(result);
}

MissAnswer modelled_misses(const MissQuestion& question) {
  std::vector<int> cores = {question.sender, question.receiver};
  cores.insert(cores.end(), question.bystanders.begin(), question.bystanders.end());
  HierarchyShape shape;
  try {
    if (question.message > kLargestMessage) {
      throw std::invalid_argument(
          fmt::format("messages above {} B pass in pieces, which the model does not know", kLargestMessage));
    }
    shape = shape_of_cores(cores);
  } catch (const std::invalid_argument& error) {
    const json unknown = {{"unknown", error.what()}};
    return {unknown, unknown};
  }
  const SizeWindow& sizes = question.sizes;
  const std::uint64_t largest = sizes.count == 0 ? 0 : sizes.first + (sizes.count - 1) * sizes.step;
  const auto memory = synthetic_memory(cores.size(), question.message, largest, question.footprint);
  MissAnswer answer{modelled_misses(shape, exchange_pattern(memory, question.touching), sizes),
                    without(shape, memory, question.touching, sizes.count)};
  answer.after["model"] = model_record(shape, cores, question.footprint);
  return answer;
}

}  // namespace elbowroom

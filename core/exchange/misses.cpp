#include "exchange/misses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/machine.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 2> kSideNames = {"sender", "receiver"};

// The levels that perf_event names: the nearest and the last of a core.
std::array<std::string, 2> level_names(int core) {
  const auto caches = Machine::here().caches(core);
  return caches.empty() ? std::array<std::string, 2>{"L1", "L3"}
                        : std::array{fmt::format("L{}", caches.front().level), fmt::format("L{}", caches.back().level)};
}

void add_counted(json& record, const CountedMisses& counted, std::size_t kind,
                 const std::array<std::string, 2>& levels) {
  json measured = {{"source", "measured"}};
  for (std::size_t side = 0; side < kSideNames.size(); ++side) {
    const CountedMisses::Sizes& sizes = counted.sides[side][kind];
    for (std::size_t which = 0; which < levels.size(); ++which) {
      const bool all = std::all_of(sizes.begin(), sizes.end(), [&](const auto& one) { return one[which].has_value(); });
      for (std::size_t i = 0; all && i < sizes.size(); ++i) {
        measured[kSideNames[side]][levels[which]].push_back(*sizes[i][which]);
      }
    }
  }
  if (measured.size() > 1) {
    record["measured"] = std::move(measured);
  }
}

json not_measured(const CountedMisses& counted, const std::array<std::string, 2>& levels) {
  json reasons = json::object();
  for (const char* level : {"L1", "L2", "L3"}) {
    const auto which = static_cast<std::size_t>(std::find(levels.begin(), levels.end(), level) - levels.begin());
    if (which == levels.size()) {
      reasons[level] = "perf_event has no name for misses of this level that all processors know";
    } else if (!counted.reasons[which].empty()) {
      reasons[level] = counted.reasons[which];
    }
  }
  return reasons;
}

MissQuestion question_of(const Request& request) {
  const Extraneous& extraneous = *request.extraneous;
  MissQuestion question;
  question.sender = placement_of(request, 0, true).comm_cores.front();
  question.receiver = placement_of(request, 1, true).comm_cores.front();
  if (extraneous.who == Who::bystanders) {
    question.bystanders = request.first.comp_cores;
  }
  question.touching = {extraneous.touches(0), extraneous.touches(1), extraneous.who == Who::bystanders,
                       extraneous.writes,     extraneous.different,  extraneous.barrier};
  question.message = static_cast<std::uint64_t>(request.size);
  question.sizes = {static_cast<std::uint64_t>(extraneous.first), static_cast<std::uint64_t>(extraneous.step),
                    static_cast<std::uint64_t>(extraneous.count)};
  return question;
}

}  // namespace

MissAnswer misses_of(const Request& request, const CountedMisses& counted) {
  const MissQuestion question = question_of(request);
  MissAnswer answer = modelled_misses(question);
  const auto levels = level_names(question.sender);
  add_counted(answer.without, counted, 0, levels);
  add_counted(answer.after, counted, 1, levels);
  answer.after["not_measured"] = not_measured(counted, levels);
  return answer;
}

}  // namespace elbowroom

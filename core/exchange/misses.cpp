#include "exchange/misses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/machine.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 2> kSideNames = {"sender", "receiver"};

using Names = std::array<std::string, 3>;

constexpr std::array<const char*, 3> kLevels = {"L1", "L2", "L3"};

// The levels of the events of miss_events: the nearest, the last and the second of a core.
Names level_names(int core) {
  const auto caches = Machine::here().caches(core);
  if (caches.empty()) {
    return {"L1", "L3", "L2"};
  }
  // Where the second level is the last one, the event that perf_event names counts it.
  const std::string last = fmt::format("L{}", caches.back().level);
  return {fmt::format("L{}", caches.front().level), last, last == "L2" ? "" : "L2"};
}

const Names kWorkNames = {"instructions", "cycles", "L1_writes"};

void add_counted(json& sides, const CountedSet& counted, std::size_t kind, const Names& names) {
  for (std::size_t side = 0; side < kSideNames.size(); ++side) {
    const CountedSet::Sizes& sizes = counted.sides[side][kind];
    for (std::size_t which = 0; which < names.size(); ++which) {
      const bool all = std::all_of(sizes.begin(), sizes.end(), [&](const auto& one) { return one[which].has_value(); });
      for (std::size_t i = 0; all && !names[which].empty() && i < sizes.size(); ++i) {
        sides[kSideNames[side]][names[which]].push_back(*sizes[i][which]);
      }
    }
  }
}

void add_measured(json& record, const CountedMisses& counted, std::size_t kind, const Names& levels) {
  json measured = json::object();
  add_counted(measured, counted.misses, kind, levels);
  if (!measured.empty()) {
    measured["source"] = "measured";
    record["measured"] = std::move(measured);
  }
  json work = json::object();
  add_counted(work, counted.work, kind, kWorkNames);
  if (!work.empty()) {
    record["work"] = std::move(work);
  }
}

json not_measured(const json& record, const CountedMisses& counted, const Names& levels) {
  json reasons = json::object();
  const auto add = [&](const std::string& name, const std::string& reason, const char* where) {
    const json found = record.value(where, json::object()).value("sender", json::object());
    if (!name.empty() && !found.contains(name)) {
      reasons[name] = reason.empty() ? "counters shared their registers with others" : reason;
    }
  };
  for (const std::size_t which : {0, 1, 2}) {
    add(levels[which], counted.misses.reasons[which], "measured");
    add(kWorkNames[which], counted.work.reasons[which], "work");
  }
  for (const char* level : kLevels) {
    if (std::find(levels.begin(), levels.end(), level) == levels.end()) {
      reasons[level] = "the cores have no such level";
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
  add_measured(answer.without, counted, 0, levels);
  add_measured(answer.after, counted, 1, levels);
  answer.after["not_measured"] = not_measured(answer.after, counted, levels);
  return answer;
}

}  // namespace elbowroom

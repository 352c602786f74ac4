#include "trace/merge/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace elbowroom::trace {
namespace {

using Json = nlohmann::ordered_json;

struct Sums {
  std::uint64_t recorded = 0;
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
};

Sums sums_of(const MergedJob& job) {
  Sums sums;
  for (const MergedThread& thread : job.threads) {
    sums.recorded += thread.recorded;
    sums.kept += thread.kept;
    sums.lost += thread.lost;
  }
  return sums;
}

std::uint64_t sync_points(const MergedJob& job) {
  std::uint64_t points = 0;
  for (const MergedRank& rank : job.ranks) {
    points += rank.syncs.size();
  }
  return points;
}

Json pairs_of(const Messages& messages) {
  Json told = Json::array();
  for (const MessagePair& pair : messages.pairs()) {
    told.push_back({{"from", pair.from},
                    {"to", pair.to},
                    {"messages", pair.messages},
                    {"tachyons", pair.tachyons},
                    {"suspect", pair.suspect},
                    {"floor_ns", pair.floor ? Json(*pair.floor) : Json()}});
  }
  return told;
}

template <typename Pick>
Json ranks_where(const OpenedTrace& trace, Pick pick) {
  Json told = Json::array();
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    if (pick(i)) {
      told.push_back(trace.job.ranks[i].rank);
    }
  }
  return told;
}

Json fields_of(const MergedType& type) {
  Json told = Json::array();
  for (const std::string& field : type.fields) {
    told.push_back(field.empty() ? Json() : Json(field));
  }
  return told;
}

Json type_stat(const MergedJob& job, const MergedType& type, const TypeCounts& counts) {
  return {{"name", type.name},         {"category", job.categories[type.category]},
          {"fields", fields_of(type)}, {"events", counts.events},
          {"per_second", counts.bins}, {"begins", counts.begins},
          {"ends", counts.ends},       {"total_ns", counts.total_ns}};
}

Json rank_stat(const OpenedTrace& trace, const Merged& merged, std::size_t rank) {
  const std::optional<LinesEnd>& end = trace.ranks[rank].end;
  const auto cost = [&](std::uint64_t events) {
    return end ? Json(end->event_ns * static_cast<double>(events)) : Json();
  };
  std::uint64_t recorded = 0;
  for (const MergedThread& thread : trace.job.threads) {
    recorded += thread.rank == rank ? thread.recorded : 0;
  }
  Json categories = Json::array();
  for (std::size_t i = 0; i < trace.job.categories.size(); ++i) {
    const std::uint64_t events = merged.statistics.events(rank, i);
    categories.push_back({{"name", trace.job.categories[i]}, {"events", events}, {"overhead_ns", cost(events)}});
  }
  return {{"rank", trace.job.ranks[rank].rank},
          {"host", trace.job.ranks[rank].host},
          {"event_ns", end ? Json(end->event_ns) : Json()},
          {"overhead_ns", cost(recorded)},
          {"advised_bytes", end ? Json(end->advised_bytes) : Json()},
          {"by_category", categories}};
}

Json segments_of(const clock::Correction& correction) {
  Json told = Json::array();
  for (const clock::Segment& segment : correction.segments()) {
    told.push_back({{"from", segment.from},
                    {"to", segment.to},
                    {"offset_ns", segment.offset},
                    {"drift_ppb", segment.drift_ppb},
                    {"error_ns", segment.error},
                    {"stepped", segment.stepped}});
  }
  return told;
}

Json flags_of(const RankTimes& times) {
  Json told = Json::array();
  const clock::CorrectionFlags& flags = times.correction().flags();
  for (const auto& [is, name] : {std::pair{times.unsynced(), "unsynced"},
                                 {flags.single, "single"},
                                 {flags.backwards, "backwards"},
                                 {flags.rejected > 0, "rejected"},
                                 {flags.steps > 0, "stepped"}}) {
    if (is) {
      told.push_back(name);
    }
  }
  return told;
}

}  // namespace

bool clocks_trusted(const OpenedTrace& trace) {
  return std::none_of(trace.ranks.begin(), trace.ranks.end(),
                      [](const OpenedRank& rank) { return rank.times.unsynced(); });
}

bool trusted(const OpenedTrace& trace, const Merged& merged) {
  const bool all_there =
      std::all_of(trace.job.ranks.begin(), trace.job.ranks.end(), [](const MergedRank& rank) { return rank.there; });
  return all_there && trace.damage.empty() && merged.unsynced == 0 && merged.messages.totals().tachyons == 0 &&
         merged.monotone && clocks_trusted(trace);
}

Json check_report(const OpenedTrace& trace, const Merged& merged, bool per_type) {
  const Sums sums = sums_of(trace.job);
  const MessageTotals& totals = merged.messages.totals();
  Json damage = Json::array();
  for (const Damage& one : trace.damage) {
    damage.push_back({{"file", one.file}, {"what", one.what}});
  }
  std::vector<std::string> warnings = trace.job.warnings;
  for (const std::string& warning : merged.messages.warnings()) {
    warnings.push_back(warning);
  }
  Json told = {
      {"schema", "elbowroom-trace-check"},
      {"version", 1},
      {"events", sums.recorded},
      {"kept", sums.kept},
      {"lost", sums.lost},
      {"messages", totals.messages},
      {"tachyons", totals.tachyons},
      {"suspect", totals.suspect},
      {"unmatched", totals.unmatched},
      {"ranks", trace.job.ranks.size()},
      {"threads", trace.job.threads.size()},
      {"missing", ranks_where(trace, [&](std::size_t i) { return !trace.job.ranks[i].there; })},
      {"killed", ranks_where(trace, [&](std::size_t i) { return trace.ranks[i].killed; })},
      {"monotone", merged.monotone},
      {"sync_points", sync_points(trace.job)},
      {"worst_error_ns", merged.worst_error < 0 ? Json() : Json(merged.worst_error)},
      {"duration_ns", trace.duration},
      {"damage", damage},
      {"warnings", warnings},
      {"pairs", pairs_of(merged.messages)},
  };
  if (per_type) {
    Json types = Json::array();
    for (std::size_t i = 0; i < trace.job.types.size(); ++i) {
      const MergedType& type = trace.job.types[i];
      types.push_back({{"name", type.name},
                       {"category", trace.job.categories[type.category]},
                       {"events", merged.statistics.types()[i].events}});
    }
    told["types"] = types;
  }
  return told;
}

Json stat_report(const OpenedTrace& trace, const Merged& merged) {
  Json types = Json::array();
  for (std::size_t i = 0; i < trace.job.types.size(); ++i) {
    types.push_back(type_stat(trace.job, trace.job.types[i], merged.statistics.types()[i]));
  }
  Json threads = Json::array();
  for (const MergedThread& thread : trace.job.threads) {
    threads.push_back({{"rank", trace.job.ranks[thread.rank].rank},
                       {"thread", thread.thread},
                       {"name", thread.name},
                       {"kept", thread.kept},
                       {"lost", thread.lost},
                       {"recorded", thread.recorded}});
  }
  Json ranks = Json::array();
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    ranks.push_back(rank_stat(trace, merged, i));
  }
  return {{"duration_ns", trace.duration},
          {"bin_ns", merged.statistics.bin_ns()},
          {"types", types},
          {"threads", threads},
          {"ranks", ranks}};
}

Json sync_report(const OpenedTrace& trace) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const RankTimes& times = trace.ranks[i].times;
    Json points = Json::array();
    for (const MergedSync& sync : times.syncs()) {
      points.push_back({{"local", sync.local},
                        {"offset", sync.offset},
                        {"low", sync.low},
                        {"high", sync.high},
                        {"used", sync.used}});
    }
    ranks.push_back({{"rank", trace.job.ranks[i].rank},
                     {"host", trace.job.ranks[i].host},
                     {"points", points},
                     {"segments", segments_of(times.correction())},
                     {"flags", flags_of(times)}});
  }
  return {{"ranks", ranks}};
}

}  // namespace elbowroom::trace

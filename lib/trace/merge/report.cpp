#include "trace/merge/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace elbowroom::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostLost = 0.01;            // of a rank's events, in a trace that is to be trusted
constexpr double kMostUnmatched = 0.01;       // of the ends of messages, likewise
constexpr std::size_t kMostListed = 1 << 12;  // ranks

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
  Json report = Json::array();
  for (const MessagePair& pair : messages.pairs()) {
    report.push_back({{"from", pair.from},
                      {"to", pair.to},
                      {"messages", pair.messages},
                      {"tachyons", pair.tachyons},
                      {"suspect", pair.suspect},
                      {"mismatched", pair.mismatched},
                      {"floor_ns", pair.floor ? Json(*pair.floor) : Json()}});
  }
  return report;
}

std::string of(std::uint64_t part, std::uint64_t all) { return std::to_string(part) + " of " + std::to_string(all); }

void doubt_files(const OpenedTrace& trace, std::vector<std::string>& report) {
  const auto there =
      std::count_if(trace.job.ranks.begin(), trace.job.ranks.end(), [](const MergedRank& rank) { return rank.there; });
  if (const std::uint64_t missing = trace.job.size - static_cast<std::uint64_t>(there); missing > 0) {
    report.push_back(of(missing, trace.job.size) + " ranks have no files here");
  }
  if (!trace.damage.empty()) {
    report.push_back("files are damaged: " + trace.damage.front().file + ": " + trace.damage.front().what +
                     (trace.damage.size() > 1 ? ", and " + std::to_string(trace.damage.size() - 1) + " more" : ""));
  }
}

// What a flight recorder overwrites is lost on purpose.
void doubt_losses(const OpenedTrace& trace, std::vector<std::string>& report) {
  std::vector<std::uint64_t> recorded(trace.ranks.size(), 0);
  std::vector<std::uint64_t> lost(trace.ranks.size(), 0);
  for (std::size_t i = 0; i < trace.threads.size(); ++i) {
    const MergedThread& thread = trace.job.threads[i];
    recorded[thread.rank] += thread.recorded;
    lost[thread.rank] += trace.threads[i].overwritten ? 0 : thread.lost;
  }
  std::size_t losing = 0;
  std::size_t worst = 0;
  const auto share = [&](std::size_t rank) {
    return recorded[rank] == 0 ? 0.0 : static_cast<double>(lost[rank]) / static_cast<double>(recorded[rank]);
  };
  for (std::size_t rank = 0; rank < lost.size(); ++rank) {
    losing += share(rank) > kMostLost ? 1 : 0;
    worst = share(rank) > share(worst) ? rank : worst;
  }
  if (losing > 0) {
    std::array<char, 16> percent{};
    std::snprintf(percent.data(), percent.size(), "%.3g %%", 100 * share(worst));
    report.push_back("rank " + std::to_string(trace.job.ranks[worst].rank) + " lost " + percent.data() +
                     " of its events (" + of(lost[worst], recorded[worst]) + ")" +
                     (losing > 1 ? ", and " + std::to_string(losing - 1) + " other ranks more than 1 %" : "") +
                     "; record again with larger buffers, fewer categories or a region of interest");
  }
}

// What a flight recorder overwrites leaves ends without the other on purpose.
void doubt_unmatched(const OpenedTrace& trace, const MessageTotals& totals, std::vector<std::string>& report) {
  const std::uint64_t ends = 2 * totals.messages + totals.unmatched;
  const bool overwritten = std::any_of(trace.threads.begin(), trace.threads.end(),
                                       [](const ThreadSource& thread) { return thread.overwritten; });
  if (!overwritten && static_cast<double>(totals.unmatched) > kMostUnmatched * static_cast<double>(ends)) {
    std::array<char, 16> percent{};
    std::snprintf(percent.data(), percent.size(), "%.3g %%",
                  100 * static_cast<double>(totals.unmatched) / static_cast<double>(ends));
    report.push_back(of(totals.unmatched, ends) + " ends of messages (" + percent.data() + ") have no other end here");
  }
}

template <typename Pick>
Json ranks_where(const OpenedTrace& trace, Pick pick) {
  Json report = Json::array();
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    if (report.size() < kMostListed && pick(i)) {
      report.push_back(trace.job.ranks[i].rank);
    }
  }
  return report;
}

// Those behind the last one with files are not opened: any number may be claimed.
Json missing_ranks(const OpenedTrace& trace) {
  Json listed = ranks_where(trace, [&](std::size_t i) { return !trace.job.ranks[i].there; });
  for (std::size_t rank = trace.ranks.size(); rank < trace.job.size && listed.size() < kMostListed; ++rank) {
    listed.push_back(rank);
  }
  return listed;
}

Json fields_of(const MergedType& type) {
  Json report = Json::array();
  for (const std::string& field : type.fields) {
    report.push_back(field.empty() ? Json() : Json(field));
  }
  return report;
}

Json type_stat(const MergedJob& job, const MergedType& type, const TypeCounts& counts) {
  return {{"name", type.name},
          {"category", job.categories[type.category]},
          {"fields", fields_of(type)},
          {"events", counts.events},
          {"per_bin", counts.bins},
          {"per_second", counts.bins},  // its old name, until 1.0
          {"begins", counts.begins},
          {"ends", counts.ends},
          {"total_ns", counts.total_ns},
          {"whole", counts.whole},
          {"longest_ns", counts.longest_ns},
          {"bytes", counts.bytes}};
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
  Json report = Json::array();
  for (const clock::Segment& segment : correction.segments()) {
    report.push_back({{"from", segment.from},
                      {"to", segment.to},
                      {"offset_ns", segment.offset},
                      {"drift_ppb", segment.drift_ppb},
                      {"error_ns", segment.error},
                      {"stepped", segment.stepped}});
  }
  return report;
}

Json flags_of(const RankTimes& times) {
  Json report = Json::array();
  const clock::CorrectionFlags& flags = times.correction().flags();
  for (const auto& [is, name] : {std::pair{times.unsynced(), "unsynced"},
                                 {flags.single, "single"},
                                 {flags.backwards, "backwards"},
                                 {flags.rejected > 0, "rejected"},
                                 {flags.steps > 0, "stepped"},
                                 {flags.jumped > 0, "jumped"},
                                 {flags.unlocated > 0, "unlocated"}}) {
    if (is) {
      report.push_back(name);
    }
  }
  return report;
}

}  // namespace

std::vector<std::string> clock_doubts(const OpenedTrace& trace) {
  std::vector<std::string> report;
  const auto unsynced = std::count_if(trace.ranks.begin(), trace.ranks.end(),
                                      [](const OpenedRank& rank) { return rank.times.unsynced(); });
  if (unsynced > 0) {
    report.push_back("the clocks of " + of(static_cast<std::uint64_t>(unsynced), trace.job.size) +
                     " ranks were never compared with the others'");
  }
  doubt_files(trace, report);
  return report;
}

std::vector<std::string> doubts(const OpenedTrace& trace, const Merged& merged) {
  std::vector<std::string> report = clock_doubts(trace);
  const MessageTotals& totals = merged.messages.totals();
  if (totals.mismatched > 0) {
    report.push_back(of(totals.mismatched, totals.messages) +
                     " messages are received with another size than they were sent with");
  }
  doubt_unmatched(trace, totals, report);
  if (totals.tachyons > 0) {
    report.push_back(of(totals.tachyons, totals.messages) + " messages arrive before they were sent");
  }
  if (!merged.monotone) {
    report.push_back("times go back in the order of events");
  }
  doubt_losses(trace, report);
  if (merged.changed(trace)) {
    report.push_back("the files changed while they were read; read them again once the program has ended");
  }
  return report;
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
  Json report = {
      {"schema", "elbowroom/trace-check"},
      {"version", 1},
      {"events", sums.recorded},
      {"kept", sums.kept},
      {"lost", sums.lost},
      {"messages", totals.messages},
      {"tachyons", totals.tachyons},
      {"suspect", totals.suspect},
      {"mismatched", totals.mismatched},
      {"unmatched", totals.unmatched},
      {"ranks", trace.job.size},
      {"threads", trace.job.threads.size()},
      {"missing", missing_ranks(trace)},
      {"killed", ranks_where(trace, [&](std::size_t i) { return trace.ranks[i].killed; })},
      {"monotone", merged.monotone},
      {"sync_points", sync_points(trace.job)},
      {"worst_error_ns", merged.worst_error < 0 ? Json() : Json(merged.worst_error)},
      {"duration_ns", trace.job.duration},
      {"damage", damage},
      {"doubts", doubts(trace, merged)},
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
    report["types"] = types;
  }
  return report;
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
    if (trace.job.ranks[i].there) {
      ranks.push_back(rank_stat(trace, merged, i));
    }
  }
  return {{"duration_ns", trace.job.duration},
          {"bin_ns", merged.statistics.bin_ns()},
          {"types", types},
          {"threads", threads},
          {"ranks", ranks},
          {"doubts", doubts(trace, merged)},
          {"warnings", trace.job.warnings}};
}

Json sync_report(const OpenedTrace& trace) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    if (!trace.job.ranks[i].there) {
      continue;
    }
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
  return {{"ranks", ranks}, {"doubts", clock_doubts(trace)}, {"warnings", trace.job.warnings}};
}

}  // namespace elbowroom::trace

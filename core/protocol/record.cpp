#include "protocol/record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/clock.hpp"
#include "protocol/median.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::size_t kMostSlices = 32;    // of a computation's rate over time
constexpr double kMisplaced = 0.01;        // share of pages elsewhere that is still the wanted node
constexpr double kFrequencyChange = 0.02;  // docs/design/method.md, rule 14
constexpr double kToleratedSteal = 0.01;   // of the phase
constexpr double kNsPerS = 1e9;

// Six digits: below the noise, above what anybody reads.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) {
    return value;
  }
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

double message_value(const Request& request, std::size_t lanes, const BatchTime& batch) {
  const double per_iteration = batch.seconds / static_cast<double>(batch.iterations);
  const double one_way = request.pattern == Pattern::pingpong ? per_iteration / 2 : per_iteration;
  return request.latency ? one_way * 1e6
                         : static_cast<double>(request.size) * static_cast<double>(lanes) / one_way / 1e6;
}

double tenths_of_ns(double us) { return std::round(us * 1e4) / 1e4; }

template <typename Value>
json visits_table(const std::vector<std::vector<Visit>>& visits, Value value) {
  json rows = json::array();
  for (const std::vector<Visit>& iteration : visits) {
    json row = json::array();
    for (const Visit& visit : iteration) {
      row.push_back(value(visit));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// A side of a phase: median and all values, us.
json durations_record(const std::vector<double>& seconds, const char* value) {
  json batches = json::array();
  for (const double duration : seconds) {
    batches.push_back(std::round(duration * kNsPerS) / 1e3);
  }
  return {{value, std::round(median(seconds) * kNsPerS) / 1e3}, {"unit", "us"}, {"batches", std::move(batches)}};
}

std::int64_t first_arrival(const Visits& visits) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& kind : visits) {
    for (const auto& iteration : kind) {
      for (const Visit& visit : iteration) {
        first = std::min(first, visit.enter);
      }
    }
  }
  return first;
}

}  // namespace

double rate_scale(const KernelInfo& kernel, int cursor) {
  if (kernel.rate_unit == "MB/s") {
    return (kernel.bytes_read + kernel.bytes_written) / 1e6;
  }
  if (kernel.rate_unit == "Mflop/s") {
    return kernel.flops * (kernel.uses_cursor ? cursor : 1) / 1e6;
  }
  return 1e-6;
}

json computation_record(const std::vector<ComputingReport>& reports, const Window& window, const KernelInfo& kernel,
                        int cursor, std::set<std::string>& flags) {
  const double scale = rate_scale(kernel, cursor);
  json per_core = json::array();
  std::vector<const std::vector<Chunk>*> logs;
  double rate = 0;
  std::uint64_t items = 0;
  std::uint64_t items_all = 0;
  for (const ComputingReport& report : reports) {
    const Throughput own = inside(*report.chunks, window);
    if (!covers(*report.chunks, window)) {
      flags.insert("not_overlapped");
    }
    if (own.items == 0) {
      flags.insert("too_short");
    }
    if (!report.valid) {
      flags.insert("validation_failed");
    }
    per_core.push_back(rounded(own.rate() * scale));
    rate += own.rate() * scale;
    items += own.items;
    for (const Chunk& chunk : *report.chunks) {
      items_all += chunk.items;
    }
    logs.push_back(report.chunks);
  }
  const std::size_t shortest = logs.empty() ? 0 : (*std::min_element(logs.begin(), logs.end(), [](auto* a, auto* b) {
                                                    return a->size() < b->size();
                                                  }))->size();
  json batches = json::array();
  for (const double slice : rates_over_time(logs, window, std::clamp<std::size_t>(shortest / 2, 1, kMostSlices))) {
    batches.push_back(rounded(slice * scale));
  }
  return {{"rate", rounded(rate)}, {"unit", kernel.rate_unit}, {"per_core", per_core},
          {"batches", batches},    {"items", items},           {"items_all", items_all}};
}

json communication_record(const std::vector<BatchTime>& batches, const Request& request, std::size_t lanes,
                          double minimum_ns, std::set<std::string>& flags) {
  BatchTime all{0, 0};
  json values = json::array();
  for (const BatchTime& batch : batches) {
    all.seconds += batch.seconds;
    all.iterations += batch.iterations;
    values.push_back(rounded(message_value(request, lanes, batch)));
    if (batch.seconds * 1e9 < minimum_ns) {
      flags.insert("too_short");
    }
  }
  const std::int64_t messages =
      all.iterations * static_cast<std::int64_t>(lanes) * (request.pattern == Pattern::pingpong ? 2 : 1);
  return {{"value", rounded(message_value(request, lanes, all))},
          {"unit", request.latency ? "us" : "MB/s"},
          {"batches", values},
          {"messages", messages},
          {"bytes", messages * request.size}};
}

json due_record(const std::vector<DueMessage>& messages, const Request& request, double minimum_ns,
                std::set<std::string>& flags) {
  std::vector<BatchTime> batches;
  json late = json::array();
  double seconds = 0;
  for (const DueMessage& message : messages) {
    batches.push_back({static_cast<double>(message.end - message.start) * 1e-9, 1});
    late.push_back(rounded(static_cast<double>(message.start - message.due) * 1e-3));
    seconds += batches.back().seconds;
  }
  if (seconds * 1e9 < minimum_ns) {
    flags.insert("too_short");
  }
  json record = communication_record(batches, request, 1, 0, flags);
  record["due"] = {{"period_us", rounded(request.period * 1e6)},
                   {"first_ns", messages.front().due},
                   {"clock_call_ns", clock_info().call_ns},
                   {"late_us", std::move(late)}};
  return record;
}

json bytes_record(const KernelInfo& kernel, int cursor) {
  return {{"algorithmic_per_item", kernel.bytes_read + kernel.bytes_written},
          {"bus_per_item", kernel.bus_bytes},
          {"flops_per_item", kernel.flops * (kernel.uses_cursor ? cursor : 1)},
          {"instruction", vector_target() + (kernel.non_temporal ? " non-temporal" : " plain")}};
}

json pages_record(const std::vector<PageReport>& reports, std::set<std::string>& flags) {
  double on_node = 0;
  double looked_at = 0;
  double huge = 0;
  double known = 0;
  for (const PageReport& report : reports) {
    if (!report.unknown.empty()) {
      return {{"wanted", report.wanted}, {"unknown", report.unknown}};
    }
    on_node += report.share * static_cast<double>(report.looked_at);
    looked_at += static_cast<double>(report.looked_at);
    huge += report.huge_share >= 0 ? report.huge_share : 0;
    known += report.huge_share >= 0 ? 1 : 0;
  }
  if (reports.empty() || looked_at == 0) {
    return nullptr;
  }
  const double share = on_node / looked_at;
  if (share < 1 - kMisplaced) {
    flags.insert("wrong_node");
  }
  json record = {
      {"wanted", reports.front().wanted}, {"share", rounded(share)}, {"page_size", reports.front().page_size}};
  if (known > 0) {
    record["huge_share"] = rounded(huge / known);
  }
  return record;
}

json one_way_record(const std::vector<double>& times, std::int64_t size) {
  json batches = json::array();
  for (const double time : times) {
    batches.push_back(tenths_of_ns(time));
  }
  const auto messages = static_cast<std::int64_t>(times.size());
  return {{"value", tenths_of_ns(median(times))},
          {"unit", "us"},
          {"batches", std::move(batches)},
          {"messages", messages},
          {"bytes", messages * size}};
}

json clocks_record(const ClockCheck& clocks) {
  return {{"offset_ns", std::round(clocks.offset_ns())}, {"bound_ns", std::round(clocks.bound_ns())}};
}

json overlap_record(const Visits& visits, double clock_bound) {
  const std::int64_t origin = first_arrival(visits);
  const auto since = [origin](std::int64_t Visit::*time) {
    return [origin, time](const Visit& visit) { return static_cast<double>(visit.*time - origin) / kNsPerS; };
  };
  json record = {{"clock_bound", clock_bound}};
  for (const Kind kind : kKinds) {
    const auto& own = visits[static_cast<std::size_t>(kind)];
    if (own.empty()) {
      continue;
    }
    json arrays = {{"enter", visits_table(own, since(&Visit::enter))},
                   {"leave", visits_table(own, since(&Visit::leave))}};
    if (kind == Kind::together) {
      arrays["posted"] = visits_table(own, since(&Visit::posted));
      arrays["computed"] = visits_table(own, since(&Visit::computed));
      arrays["tests"] = visits_table(own, [](const Visit& visit) { return visit.tests; });
      arrays["tests_s"] =
          visits_table(own, [](const Visit& visit) { return static_cast<double>(visit.tests_ns) / kNsPerS; });
    }
    record[kind == Kind::message       ? "message"
           : kind == Kind::computation ? "computation"
                                       : "together"] = std::move(arrays);
  }
  return record;
}

json overlap_phases(const Visits& visits, double least, const std::set<std::string>& flags) {
  json phases = json::array();
  for (const Kind kind : kKinds) {
    const auto& own = visits[static_cast<std::size_t>(kind)];
    if (own.empty()) {
      continue;
    }
    const std::vector<double> whole = durations(own);
    const double measured = std::accumulate(whole.begin(), whole.end(), 0.0);
    std::set<std::string> phase_flags = flags;
    if (measured < least) {
      phase_flags.insert("too_short");
    }
    json phase = {{"phase", name_of(kind == Kind::message       ? Phase::communication
                                    : kind == Kind::computation ? Phase::computation
                                                                : Phase::together)},
                  {"measured_s", measured},
                  {"status", phase_status(true, phase_flags)},
                  {"flags", phase_flags}};
    switch (kind) {
      case Kind::message: phase["comm"] = durations_record(whole, "value"); break;
      case Kind::computation: phase["comp"] = durations_record(whole, "rate"); break;
      case Kind::together:
        phase["comp"] = durations_record(inner_durations(own), "rate");
        phase["total"] = durations_record(whole, "value");
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

bool voids(const std::string& flag) {
  return flag == "not_overlapped" || flag == "validation_failed" || flag == "too_short" || flag == "wrong_node" ||
         flag == "late" || flag == "clocks_differ" || flag == "settings_changed";
}

std::string phase_status(bool steady, const std::set<std::string>& flags) {
  if (std::any_of(flags.begin(), flags.end(), voids)) {
    return "void";
  }
  return steady ? "ok" : "not_stable";
}

bool frequency_moved(const json& phases, const Placement& placement) {
  for (const bool computing : {true, false}) {
    for (const int core : computing ? placement.comp_cores : placement.comm_cores) {
      double low = std::numeric_limits<double>::infinity();
      double high = 0;
      for (const json& phase : phases) {
        const std::string name = phase.at("phase");
        const json table = phase.value("observed", json::object()).value("frequency_khz", json::object());
        const json values = table.value(std::to_string(core), json::array());
        if ((name == "AB" || name == (computing ? "A" : "B")) && values.size() == 3 && values[1].is_number()) {
          low = std::min(low, values[1].get<double>());
          high = std::max(high, values[1].get<double>());
        }
      }
      if (high > low * (1 + kFrequencyChange)) {
        return true;
      }
    }
  }
  return false;
}

bool stolen(const json& observed, double seconds) { return observed.value("steal_s", 0.0) > kToleratedSteal * seconds; }

}  // namespace elbowroom

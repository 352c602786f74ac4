#include "protocol/record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.hpp"

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr std::size_t kMostSlices = 32;    // of a computation's rate over time
constexpr double kMisplaced = 0.01;        // share of pages elsewhere that is still the wanted node
constexpr double kFrequencyChange = 0.02;  // docs/design/method.md, rule 14
constexpr double kToleratedSteal = 0.01;   // of the phase

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

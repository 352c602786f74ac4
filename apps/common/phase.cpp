#include "common/phase.hpp"

#include <algorithm>
#include <utility>

#include "base/request_error.hpp"
#include "common/settings.hpp"
#include "common/together.hpp"

namespace elbowroom::program {

using nlohmann::json;

Mode mode_of(const std::string& phase) {
  if (phase != "A" && phase != "B" && phase != "AB") {
    throw RequestError("sequence", phase, "is not a phase of this program", "A computing, B messages, AB both");
  }
  return phase == "A" ? Mode::computing : phase == "B" ? Mode::messages : Mode::all;
}

json averaged(const std::vector<json>& ranks, const char* side, const char* value) {
  json sum;
  double count = 0;
  const bool longest = std::string(side) == "total";
  for (const json& rank : ranks) {
    if (!rank.contains(side)) {
      continue;
    }
    const json& one = rank.at(side);
    count += 1;
    if (sum.is_null()) {
      sum = {{value, one.at(value)}, {"unit", one.at("unit")}, {"batches", one.at("batches")}};
      continue;
    }
    const auto add = [&](json& to, const json& from) {
      const double a = to.get<double>();
      const double b = from.get<double>();
      to = longest ? std::max(a, b) : a + b;
    };
    add(sum[value], one.at(value));
    for (std::size_t i = 0; i < sum["batches"].size(); ++i) {
      add(sum["batches"][i], one.at("batches").at(i));
    }
  }
  if (!sum.is_null() && !longest) {
    sum[value] = sum[value].get<double>() / count;
    for (json& batch : sum["batches"]) {
      batch = batch.get<double>() / count;
    }
  }
  return sum;
}

json phase_record(const std::string& name, std::size_t index, const Span& span, std::vector<json> ranks,
                  std::set<std::string> flags, const std::string& failure) {
  for (const json& rank : ranks) {
    for (const auto& [key, flag] : {std::pair{"too_short", "too_short"}, {"strayed", "migrated"}}) {
      if (rank.at(key).get<bool>()) {
        flags.insert(flag);
      }
    }
  }
  const bool is_void = !failure.empty() || flags.contains("validation_failed") || flags.contains("too_short");
  json record = {{"phase", name},
                 {"index", index},
                 {"start_ns", span.start},
                 {"end_ns", span.end},
                 {"measured_s", span.seconds},
                 {"status", is_void ? "void" : "ok"},
                 {"flags", flags},
                 {"ranks", json::array()}};
  if (!failure.empty()) {
    record["reason"] = failure;
  }
  for (const auto& [side, value] : {std::pair{"comp", "rate"}, {"comm", "value"}, {"total", "value"}}) {
    if (const json average = averaged(ranks, side, value); !average.is_null()) {
      record[side] = average;
    }
  }
  for (json& rank : ranks) {
    rank.erase("too_short");
    rank.erase("strayed");
    record["ranks"].push_back(std::move(rank));
  }
  return record;
}

json repetition_record(const Job& job, const json& request, const std::string& failure, const json& flags,
                       const MeasuredPhase& phase) {
  std::vector<std::string> sequence;
  double window = 0;
  together(job, [&] {
    sequence = read(request, "sequence", std::vector<std::string>{"A", "B", "AB"});
    std::for_each(sequence.begin(), sequence.end(), mode_of);
    window = read(request, "window", 0.12);
  });
  json record = {{"record", "repetition"},
                 {"point", read(request, "point", std::string())},
                 {"repetition", read(request, "repetition", std::int64_t{0})},
                 {"status", failure.empty() ? "ok" : "failed"},
                 {"reason", failure},
                 {"validated", failure.empty()},
                 {"flags", flags},
                 {"phases", json::array()}};
  if (!failure.empty()) {
    return record;
  }
  for (const std::string& name : sequence) {
    json one = phase(name, record["phases"].size(), window);
    if (one.at("status") == "void") {
      record["status"] = "failed";
      record["reason"] = one.value("reason", "a rule of measuring was broken: see the flags of the phases");
      record["validated"] = one.at("flags").dump().find("validation_failed") == std::string::npos;
    }
    record["phases"].push_back(std::move(one));
  }
  return record;
}

}  // namespace elbowroom::program

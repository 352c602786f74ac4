// The phases of a program that computes and communicates, and what its ranks report of one.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "exchange/job.hpp"

namespace elbowroom::program {

enum class Mode { computing, messages, all };  // A, B, AB

inline bool computes(Mode mode) { return mode != Mode::messages; }
inline bool communicates(Mode mode) { return mode != Mode::computing; }

// Throws RequestError.
Mode mode_of(const std::string& phase);

// When it was measured.
struct Span {
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
  double seconds = 0;  // without what is not timed in between
};

// Averages of what all ranks report of a side, as the papers' figures have them (Denis et al. 2021, section 6), but for the
// total, which is the longest; null where no rank has that side.
nlohmann::json averaged(const std::vector<nlohmann::json>& ranks, const char* side, const char* value);

// The record of a phase (docs/reference/protocol.md). Each rank reports {"rank", "total", "too_short", "strayed"}, and "comp"
// and "comm" where it has them. `failure`: why there is no result; empty when there is one.
nlohmann::json phase_record(const std::string& name, std::size_t index, const Span& span,
                            std::vector<nlohmann::json> ranks, std::set<std::string> flags, const std::string& failure);

// The record of a repetition: the request's phases one after the other, each by `phase`, which gets the window in s. None
// where the program has failed before. Collective; throws RequestError.
using MeasuredPhase = std::function<nlohmann::json(const std::string& name, std::size_t index, double window)>;
nlohmann::json repetition_record(const Job& job, const nlohmann::json& request, const std::string& failure,
                                 const nlohmann::json& flags, const MeasuredPhase& phase);

}  // namespace elbowroom::program

// What the program prints: JSON documents on a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trace/merge/merge.hpp"
#include "trace/merge/opened.hpp"

namespace elbowroom::trace {

// Schema trace-check-1. `per_type`: counts of each type, besides.
nlohmann::ordered_json check_report(const OpenedTrace& trace, const Merged& merged, bool per_type = false);
// Events by type and time, by thread, by rank and category.
nlohmann::ordered_json stat_report(const OpenedTrace& trace, const Merged& merged);
// Comparisons of clocks, and what was made of them.
nlohmann::ordered_json sync_report(const OpenedTrace& trace);

// Why a trace is not to be trusted, in sentences: times between ranks are wrong or unknown, not everything could be read, or
// too much was lost. Empty: it can be trusted.
std::vector<std::string> doubts(const OpenedTrace& trace, const Merged& merged);
// The same of the comparisons of clocks.
std::vector<std::string> clock_doubts(const OpenedTrace& trace);

}  // namespace elbowroom::trace

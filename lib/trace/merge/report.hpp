// What the program prints: JSON documents on a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "trace/merge/merge.hpp"
#include "trace/merge/opened.hpp"

namespace elbowroom::trace {

// Schema trace-check-1. `per_type`: counts of each type, besides.
nlohmann::ordered_json check_report(const OpenedTrace& trace, const Merged& merged, bool per_type = false);
// Events by type and time, by thread, by rank and category.
nlohmann::ordered_json stat_report(const OpenedTrace& trace, const Merged& merged);
// Comparisons of clocks, and what was made of them.
nlohmann::ordered_json sync_report(const OpenedTrace& trace);

// False where times between ranks are wrong or unknown, or not everything could be read.
bool trusted(const OpenedTrace& trace, const Merged& merged);
bool clocks_trusted(const OpenedTrace& trace);

}  // namespace elbowroom::trace

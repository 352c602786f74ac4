// The file of lines that says of a process what its rings do not: rank-00003.jsonl.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace elbowroom::trace {

// Appended with one system call each, so that what was said before a process is killed can be read after it. `first` begins
// the file anew. Refusal: it cannot be written, or holds a name that is no UTF-8.
void append_line(const std::string& path, const nlohmann::json& line, bool first = false);

}  // namespace elbowroom::trace

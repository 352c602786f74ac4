// Outputs by the names that the command line has for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

std::vector<std::string> output_names();
std::unique_ptr<Sink> made_output(const std::string& name, const std::string& path);

}  // namespace elbowroom::trace

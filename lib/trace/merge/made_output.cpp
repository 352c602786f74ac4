#include "trace/merge/made_output.hpp"

#include <functional>
#include <map>
#include <stdexcept>

#include "trace/outputs/outputs.hpp"

namespace elbowroom::trace {
namespace {

using Maker = std::function<std::unique_ptr<Sink>(const std::string&)>;

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> known = {
      {"pftrace", perfetto_output}, {"json", chrome_output}, {"otf2", otf2_output},
      {"paje", paje_output},        {"dot", graph_output},   {"columns", columns_output},
  };
  return known;
}

}  // namespace

std::vector<std::string> output_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) {
    names.push_back(name);
  }
  return names;
}

std::unique_ptr<Sink> made_output(const std::string& name, const std::string& path) {
  const auto entry = makers().find(name);
  if (entry == makers().end()) {
    throw std::runtime_error("to '" + name + "': no such output");
  }
  return entry->second(path);
}

}  // namespace elbowroom::trace

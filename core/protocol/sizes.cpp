#include "protocol/sizes.hpp"

#include <charconv>
#include <limits>
#include <sstream>

#include "protocol/request.hpp"

namespace elbowroom {
namespace {

std::int64_t factor_of(const std::string& unit) {
  const std::vector<std::pair<std::string, std::int64_t>> factors = {{"", 1},
                                                                     {"B", 1},
                                                                     {"kB", 1'000},
                                                                     {"KB", 1'000},
                                                                     {"MB", 1'000'000},
                                                                     {"GB", 1'000'000'000},
                                                                     {"KiB", std::int64_t{1} << 10},
                                                                     {"MiB", std::int64_t{1} << 20},
                                                                     {"GiB", std::int64_t{1} << 30}};
  for (const auto& [name, factor] : factors) {
    if (name == unit) {
      return factor;
    }
  }
  return 0;
}

}  // namespace

std::int64_t parse_size(const std::string& field, const std::string& text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::int64_t factor = factor_of(std::string(rest, text.data() + text.size()));
  if (error != std::errc() || factor == 0 || number < 0 || number > std::numeric_limits<std::int64_t>::max() / factor) {
    throw RequestError(field, text, "this is not a size", "write 4096, 64MB (10^6) or 64MiB (2^20)");
  }
  return number * factor;
}

std::vector<int> parse_core_list(const std::string& field, const std::string& text) {
  std::vector<int> cores;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    int last = 0;
    const char* end = part.data() + part.size();
    auto [at, error] = std::from_chars(part.data(), end, first);
    last = first;
    if (error == std::errc() && at != end && *at == '-') {
      const auto [after, wrong] = std::from_chars(at + 1, end, last);
      at = after;
      error = wrong;
    }
    if (error != std::errc() || at != end || first < 0 || last < first || last > 1 << 20) {
      throw RequestError(field, text, "this is not a list of cores", "write 0-3,6");
    }
    for (int core = first; core <= last; ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

}  // namespace elbowroom

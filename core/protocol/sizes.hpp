// Sizes and lists of cores as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elbowroom {

// "4", "64MB" (10^6), "64MiB" (2^20), also k, G and Ki, Gi: bytes. Throws RequestError naming `field`.
std::int64_t parse_size(const std::string& field, const std::string& text);

// "0-3,6". Throws RequestError naming `field`.
std::vector<int> parse_core_list(const std::string& field, const std::string& text);

}  // namespace elbowroom

// Loads that wait for each other: the latency of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elbowroom {

inline constexpr std::size_t kLinkBytes = 64;  // a line each

// Links all `lines` of 64 bytes to one cycle in random order (Sattolo's algorithm), which no prefetcher foresees. `memory`
// is 64-byte aligned.
void link_lines(void* memory, std::size_t lines, std::uint64_t seed);

// The line that is reached from `line` by `count` links, one load after the other.
std::uint64_t follow_links(const void* memory, std::uint64_t line, std::size_t count);

}  // namespace elbowroom

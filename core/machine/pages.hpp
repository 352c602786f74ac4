// Reading the placement of pages, apart from the system calls, for tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"

namespace elbowroom {

// What move_pages(2) said of each page looked at: a node, or a negative errno where no page is present.
PageReport count_pages(const std::vector<int>& status, int wanted);

// Share of the resident memory of [start, end) that huge pages back, from the text of /proc/self/smaps (whole
// mappings are counted); -1 when nothing of it is resident or listed.
double huge_share_in(std::string_view smaps, std::uint64_t start, std::uint64_t end);

}  // namespace elbowroom

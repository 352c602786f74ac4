// Sentences that differ in their numbers only are one sentence: a job of a thousand ranks says everything a thousand times.
#pragma once

#include <string>
#include <vector>

namespace elbowroom::trace {

// Each kind once, in the order of the first ones, which name the others: "rank 1 has no sync point: ... (also ranks 2-9)".
std::vector<std::string> without_alike(const std::vector<std::string>& sentences);

}  // namespace elbowroom::trace

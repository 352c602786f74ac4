// Ranks that go on together or not at all.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "exchange/job.hpp"

namespace elbowroom::program {

// Runs `task` on every rank; when it throws on one, all ranks throw what the lowest of them threw (as RequestError, its
// message with the rank's number and host). Collective, by messages of control: who waits sleeps.
void together(const Job& job, const std::function<void()>& task);

// What every rank says, in their order, on all ranks. Collective.
std::vector<nlohmann::json> gathered(const Job& job, const nlohmann::json& own);

// The flags, in this order, that any rank raises. Collective.
nlohmann::json raised_by_any(const Job& job, const std::vector<std::pair<const char*, bool>>& flags);

}  // namespace elbowroom::program

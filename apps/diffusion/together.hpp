// Ranks that go on together or not at all.
#pragma once

#include <functional>

#include "exchange/job.hpp"

namespace elbowroom::diffusion {

// Runs `task` on every rank; when it throws on one, all ranks throw what the lowest of them threw (as RequestError, its
// message with the rank's number and host). Collective; whoever is done first sleeps.
void together(const Job& job, const std::function<void()>& task);

// The text of rank 0, on all ranks. Collective.
std::string from_first(const Job& job, std::string text);

}  // namespace elbowroom::diffusion
